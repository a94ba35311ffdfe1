"""The variants of an architecture, where the grid sets a part of it, and the settings that its networks were trained and measured at."""

from collections.abc import Mapping

from rankfall.annotations import DataFrame, Series
from rankfall.design import Architecture
from rankfall.report.labels import labels
from rankfall.report.parts import MADE_OF, OTHERS
from rankfall.report.settings import name_settings

DESIGN = [*MADE_OF, *OTHERS]
BY_TASK = ("embedding", "head")  # follow from the task, and tell variants apart where one task has several
USUAL = {name: str(getattr(Architecture("usual"), name)) for name in (*DESIGN, *BY_TASK)}


def number_variants(cells: DataFrame) -> DataFrame:
    """Cells with the number of their design among those of their name, and what it is called; and with their setting, as a label."""
    cells = cells.assign(setting=name_settings(cells), trained=cells.epochs > 0)
    filled = cells[[*DESIGN, *BY_TASK]].astype("string").fillna("")
    for part in BY_TASK:
        several = (
            filled[part].groupby([cells.architecture, cells.setting, *(filled[name] for name in DESIGN)]).nunique() > 1
        )
        names = several[several].index.get_level_values("architecture")
        filled[part] = filled[part].where(cells.architecture.isin(names), "")
    design = filled.groupby([*DESIGN, *BY_TASK], sort=False).ngroup()
    cells = cells.assign(design=design, variant="")
    for _, part in filled.groupby(cells.architecture):
        if design[part.index].nunique() > 1:
            base = part.iloc[part.apply(usual, axis=1).argmax()]
            told = {column: labels(part[column].unique()) for column in part}
            for _, own in part.groupby(design):
                cells.loc[own.index, "variant"] = describe_difference(base, own.iloc[0], told)
    return cells


def usual(design: Series) -> int:
    """How many parts of a design are those of an architecture that names none."""
    return sum(design[column].partition("(")[0] == value for column, value in USUAL.items())


def describe_difference(base: Series, one: Series, told: Mapping[str, Mapping[str, str]]) -> str:
    """What a design has in place of the parts of `base`, in labels that tell all values of a part apart."""
    pairs = ((column, base[column], one[column]) for column in told)
    return ", ".join(f"{column} {told[column][own] or 'none'}" for column, usual, own in pairs if own != usual)

"""Variants of an architecture, which exist if the grid sets a part of it, and the settings of its networks."""

from rankfall.annotations import DataFrame
from rankfall.design import Architecture
from rankfall.report.labels import labels
from rankfall.report.settings import name_settings

MADE_OF = {
    "block": "how attention and MLP are put together",
    "attention": "how tokens are mixed",
    "normaliser": "what turns scores into attention weights; null: nothing reads it",
    "position": "how places enter",
    "mask": "which pairs of tokens may attend",
    "residual": "how a sublayer's output is combined with its input",
    "mlp": "the feed-forward sublayer",
    "mlp_residual": "how the MLP's output is combined with its input; null: there is none",
    "norm": "normalisation of states",
    "norm_placement": "where the norm stands",
    "sentinels": "extra tokens that carry no input",
}
OTHERS = ("init",)  # also distinguishes variants, but is not a column


DESIGN = [*MADE_OF, *OTHERS]
BY_TASK = ("embedding", "head")  # parts that follow from the task, and distinguish variants only if a task has several
USUAL = {name: str(getattr(Architecture("usual"), name)) for name in (*DESIGN, *BY_TASK)}


def number_variants(cells: DataFrame) -> DataFrame:
    """Return cells with the columns `design`, the number of their design, `variant`, its name within the architecture, `setting`, a label,
    and `trained`."""
    from pandas import Series

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
            # The base is the design with most parts that are defaults.
            names = part.apply(lambda column: column.str.partition("(")[0])
            base = part.iloc[(names == Series(USUAL)).sum(axis=1).argmax()]
            words = {column: labels(part[column].unique()) for column in part}
            for _, variant in part.groupby(design):
                first = variant.iloc[0]
                differ = [f"{name} {words[name][first[name]] or 'none'}" for name in words if first[name] != base[name]]
                cells.loc[variant.index, "variant"] = ", ".join(differ)
    return cells

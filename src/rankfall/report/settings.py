"""The setting of a number: task, training, depth, sizes and number format. Only numbers of one setting are compared.

Code that ranks, colours or counts architectures receives a `Setting` and its rows (`rows_at`, `check_one`), because a table of several
settings cannot be ranked. Within a setting, an architecture has variants if the grid sets a part of it (`number_variants`).

A size that nothing in a network reads (the heads of a mixer without heads) is filled with that of the other networks of its setting, if
these have one value. If they have several, such networks have a separate setting.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from rankfall.annotations import DataFrame, Series
from rankfall.design import UNREAD, Architecture, Training, names
from rankfall.errors import RankfallError, suggest
from rankfall.filters import parts
from rankfall.report.headlines import Headline, headlines
from rankfall.report.labels import few, labels, many
from rankfall.report.looks import label

# Parts of every label. A label has other parts if settings with equal values of these differ in them.
ALWAYS = ("task", "training", "depth")
SIZES = ("width", "heads", "head_width", "mlp_width")
PARTS = (*ALWAYS, "task_component", *SIZES, *names(Training))
OPEN = tuple(size for size in SIZES if size in {field for unread in UNREAD.values() for field in unread})
COMPONENTS = ("task_component", "objective", "optimizer", "schedule")
NAMED = 6  # largest number of settings that a caption lists


@dataclass(frozen=True)
class Setting:
    """The setting of a row of the scorecard; `label` is unique in a table."""

    label: str
    task: str
    training: str
    trained: bool
    depth: int
    width: int
    heads: int | None
    dtype: str

    @property
    def but_depth(self) -> str:
        """The label without the depth, which is equal for settings that differ only in depth."""
        start = f"{self.task}, {self.training}"
        return start + self.label.removeprefix(f"{start}, depth {self.depth}")

    @property
    def sizes(self) -> str:
        """The sizes and number format, which a label omits if they are the same for all settings."""
        heads = "" if self.heads is None else f", {many(self.heads, 'head')}"
        return f"width {self.width}{heads}, {self.dtype}"


def name_settings(cells: DataFrame) -> Series:
    """Return the label of each cell's setting: task, training and depth, and all other parts in which settings with the same task and
    training differ. Settings whose labels differ in depth therefore differ only in depth."""
    filled = fill_sizes(cells)
    more = filled.task.where(filled.task.isna(), "")
    for column in (name for name in PARTS if name not in ALWAYS):
        group = [filled.task, filled.training, more]
        for _, values in filled[column].groupby(group):
            if values.nunique() > 1:
                words = tell_apart(column, values.unique())
                more = more.where(~more.index.isin(values.index), more + ", " + filled[column].map(words))
    return filled.task + ", " + filled.training + ", depth " + filled.depth + more


def fill_sizes(cells: DataFrame) -> DataFrame:
    """Return the parts of each setting as text. A size that nothing reads is filled if the other networks of this depth, or of all depths,
    have a single value."""
    filled = cells[list(PARTS)].astype(dict.fromkeys(("depth", *SIZES), "Int64")).astype("string")
    others = [name for name in PARTS if name not in OPEN]
    for shared in (others, [name for name in others if name != "depth"]):
        for size in OPEN:
            values = filled[size].groupby([filled[name].fillna("none") for name in shared])
            filled[size] = filled[size].fillna(values.transform("first").where(values.transform("nunique") == 1))
    return filled.fillna("none")


def tell_apart(column: str, values: Sequence[str]) -> dict[str, str]:
    """Return value -> words that distinguish the values of a column; for components with the same name, the options that differ."""
    if column not in COMPONENTS:
        return {value: f"{column.replace('_', ' ')} {value}" for value in values}
    components = {value: parts(value) for value in values}
    if len({name for name, _ in components.values()}) > 1:
        prefix = "" if column == "task_component" else f"{column} "
        return {value: f"{prefix}{label}" for value, label in labels(values).items()}
    keys = dict.fromkeys(option for _, options in components.values() for option in options)
    differ = [option for option in keys if len({options.get(option) for _, options in components.values()}) > 1]
    return {
        value: ", ".join(f"{option.replace('_', ' ')} {options.get(option, 'none')}" for option in differ) or value
        for value, (_, options) in components.items()
    }


def differences(table: DataFrame, by: str = "architecture", but: Sequence[str] = ()) -> dict[str, str]:
    """Return line -> the parts of its setting in which the lines of a figure differ: `depth 2, width 8`; empty if there is one setting.
    `by`: the column that names lines; `but`: parts that the figure shows itself, where `training` includes all its fields."""
    cells = table.drop_duplicates("key").reset_index(drop=True)
    filled = fill_sizes(cells.reindex(columns=list(PARTS)))
    shown = {by, *but} | ({*names(Training)} if "training" in (by, *but) else set())
    words: dict[str, list[str]] = {str(name): [] for name in cells[by].unique()}
    for column in (part for part in PARTS if part not in shown and filled[part].nunique() > 1):
        by_value = tell_apart(column, filled[column].unique())
        for name, values in filled[column].groupby(cells[by].astype(str)):
            words[name].append(" or ".join(sorted(by_value[value] for value in values.unique())))
    return {name: ", ".join(phrases) for name, phrases in words.items()}


def say_differ(table: DataFrame) -> str:
    """Write a clause for numbers of several settings: `, which differ in setting too (depth 2, width 8; depth 4, width 16)`."""
    phrases = sorted({words for words in differences(table, but=["training"]).values() if words})
    return f", which differ in setting too ({'; '.join(few(phrases, NAMED))})" if phrases else ""


def settings_in(scores: DataFrame, counted: Sequence[Headline] | None = None) -> list[Setting]:
    """Return the settings of a scorecard, sorted: first the one with most of the headline numbers, counted over its architectures; for
    equal counts untrained networks if all headlines prefer these, else trained ones; then the deepest; then by label.
    """
    counted = headlines() if counted is None else counted
    numbers = scores[[headline.name for headline in counted]].notna().sum(axis=1).groupby(scores.setting).sum()
    untrained = bool(counted) and all(headline.first == "untrained" for headline in counted)
    rows = scores.drop_duplicates("setting").rename(columns={"setting": "label"})
    rows = rows[[field.name for field in fields(Setting)]].astype({"heads": "Int64"}).astype(object)
    settings = [Setting(**row) for row in rows.where(rows.notna(), None).to_dict("records")]
    return sorted(
        settings,
        key=lambda setting: (-numbers[setting.label], setting.trained == untrained, -setting.depth, setting.label),
    )


def say_setting(text: str) -> str:
    """Return the label of a setting for readers, with the configuration's labels of task and training, with which it begins."""
    return ", ".join(label(part) if place < 2 else part for place, part in enumerate(text.split(", "))) if text else ""


def find_setting(scores: DataFrame, label: str, where: str) -> Setting:
    """Return the setting with this label; `where` begins the error if there is none."""
    settings = {setting.label: setting for setting in settings_in(scores)}
    if label not in settings:
        raise RankfallError(
            f"{where}: there is no setting {label!r}; there is: {'; '.join(settings)}{suggest(label, settings)}"
        )
    return settings[label]


def rows_at(scores: DataFrame, setting: Setting) -> DataFrame:
    """Return the rows of a setting."""
    return scores[scores.setting == setting.label]


def check_one(rows: DataFrame, setting: Setting) -> None:
    """Raise an error unless all rows are of this setting."""
    others = [label for label in rows.setting.unique() if label != setting.label]
    if others:
        raise RankfallError(
            f"only numbers of one setting can be compared, but these are of {setting.label!r} and {others[0]!r}: "
            "take the rows of one (rows_at)"
        )


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
        alike = filled[part].groupby([cells.architecture, cells.setting, *(filled[name] for name in DESIGN)])
        several = (alike.transform("nunique") > 1).groupby(cells.architecture).transform("any")
        filled[part] = filled[part].where(several, "")
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

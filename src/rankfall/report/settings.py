"""The setting of a number: task, training, depth, sizes and number format. Only numbers of one setting are compared.

Whatever ranks, colours or counts architectures is given a `Setting` and the rows of it (`rows_at`, `check_one`): a table of several
settings cannot be ranked.

A size that nothing in a network reads (the heads of a mixer without heads) is that of the other networks of its setting, where these have
one value. Where they have several, such networks have a setting of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from rankfall.annotations import DataFrame, Series
from rankfall.design import UNREAD, Training, names
from rankfall.errors import RankfallError, nearest
from rankfall.filters import parts
from rankfall.report.headlines import Headline, headlines
from rankfall.report.labels import labels
from rankfall.report.looks import label

ALWAYS = ("task", "training", "depth")  # in every label; others where settings that agree in these differ in them
SIZES = ("width", "heads", "head_width", "mlp_width")
PARTS = (*ALWAYS, "task_component", *SIZES, *names(Training))
OPEN = tuple(size for size in SIZES if size in {field for unread in UNREAD.values() for field in unread})
COMPONENTS = ("task_component", "objective", "optimizer", "schedule")
NAMED = 6  # settings that a caption names


@dataclass(frozen=True)
class Setting:
    """What a row of the scorecard says of its setting; `label` has no two settings of one table alike."""

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
        """The label without the depth: settings that have the same differ in depth alone."""
        start = f"{self.task}, {self.training}"
        return start + self.label.removeprefix(f"{start}, depth {self.depth}")

    @property
    def sizes(self) -> str:
        """What a label may leave out, since it is the same for all."""
        heads = "" if self.heads is None else f", {self.heads} head{'s' * (self.heads != 1)}"
        return f"width {self.width}{heads}, {self.dtype}"


COLUMNS = {"label": "setting"}  # field -> column of the scorecard, where they differ


def name_settings(cells: DataFrame) -> Series:
    """The label of each cell's setting: task, training and depth, and whatever else settings differ in that agree in task and training. So
    settings whose labels differ in depth differ in depth alone."""
    known = fill_sizes(cells)
    more = known.task.where(known.task.isna(), "")
    for column in (name for name in PARTS if name not in ALWAYS):
        alike = [known.task, known.training, more]
        for _, values in known[column].groupby(alike):
            if values.nunique() > 1:
                told = tell_apart(column, values.unique())
                more = more.where(~more.index.isin(values.index), more + ", " + known[column].map(told))
    return known.task + ", " + known.training + ", depth " + known.depth + more


def fill_sizes(cells: DataFrame) -> DataFrame:
    """The parts of a setting, as text; a size that nothing reads is the others' one value at this depth, or at any, if they have one."""
    known = cells[list(PARTS)].astype(dict.fromkeys(("depth", *SIZES), "Int64")).astype("string")
    rest = [name for name in PARTS if name not in OPEN]
    for alike in (rest, [name for name in rest if name != "depth"]):
        for size in OPEN:
            values = known[size].groupby([known[name].fillna("none") for name in alike])
            known[size] = known[size].fillna(values.transform("first").where(values.transform("nunique") == 1))
    return known.fillna("none")


def tell_apart(column: str, values: Sequence[str]) -> dict[str, str]:
    """Words that tell the values of a column apart: of components with one name, the options that differ."""
    if column not in COMPONENTS:
        return {value: f"{column.replace('_', ' ')} {value}" for value in values}
    found = {value: parts(value) for value in values}
    if len({name for name, _ in found.values()}) > 1:
        what = "" if column == "task_component" else f"{column} "
        return {value: f"{what}{label}" for value, label in labels(values).items()}
    every = dict.fromkeys(option for _, options in found.values() for option in options)
    differ = [option for option in every if len({options.get(option) for _, options in found.values()}) > 1]
    return {
        value: ", ".join(f"{option.replace('_', ' ')} {options.get(option, 'none')}" for option in differ) or value
        for value, (_, options) in found.items()
    }


def differences(table: DataFrame, by: str = "architecture", but: Sequence[str] = ()) -> dict[str, str]:
    """Of each line of a figure, `by` whose names they are told apart, the parts of its setting in which lines differ: `depth 2, width 8`.
    All are empty where there is one setting. `but`: parts that the figure shows itself. A training is all of its fields."""
    cells = table.drop_duplicates("key").reset_index(drop=True)
    known = fill_sizes(cells.reindex(columns=list(PARTS)))
    shown = {by, *but} | ({*names(Training)} if "training" in (by, *but) else set())
    words: dict[str, list[str]] = {str(name): [] for name in cells[by].unique()}
    for column in (part for part in PARTS if part not in shown and known[part].nunique() > 1):
        said = tell_apart(column, known[column].unique())
        for name, values in known[column].groupby(cells[by].astype(str)):
            words[name].append(" or ".join(sorted(said[value] for value in values.unique())))
    return {name: ", ".join(each) for name, each in words.items()}


def say_differ(table: DataFrame, by: str = "architecture", but: Sequence[str] = ("training",)) -> str:
    """Where numbers of several settings are said together: `, which differ in setting too (depth 2, width 8; depth 4, width 16)`."""
    found = sorted({words for words in differences(table, by, but).values() if words})
    more = [f"{len(found) - NAMED} more"] if len(found) > NAMED else []
    return f", which differ in setting too ({'; '.join(found[:NAMED] + more)})" if found else ""


def settings_in(scores: DataFrame, asked: Sequence[Headline] | None = None) -> list[Setting]:
    """Those of a scorecard: first the one that has most of the headline numbers, counted over its architectures; among equals the
    untrained networks where the numbers are asked of these, else the trained ones; then the deepest; then by name.
    """
    columns = [COLUMNS.get(field.name, field.name) for field in fields(Setting)]
    asked = headlines() if asked is None else asked
    numbers = scores[[headline.name for headline in asked]].notna().sum(axis=1).groupby(scores.setting).sum()
    untrained = bool(asked) and all(headline.first == "untrained" for headline in asked)
    found = [setting_of(row) for _, row in scores.drop_duplicates("setting")[columns].iterrows()]
    return sorted(found, key=lambda one: (-numbers[one.label], one.trained == untrained, -one.depth, one.label))


def setting_of(row: Any) -> Setting:
    """That of a row of the scorecard."""
    heads = None if str(row.heads) in ("None", "nan", "<NA>") else int(row.heads)  # a comparison of NA has no answer
    return Setting(
        str(row.setting),
        row.task,
        row.training,
        bool(row.trained),
        int(row.depth),
        int(row.width),
        heads,
        str(row["dtype"]),
    )


def say_setting(text: str) -> str:
    """The label of a setting as a reader sees it: it begins with its task and training, which have labels of the configuration."""
    task, training, *others = text.split(", ") if text else ["", ""]
    return ", ".join([label(task), label(training), *others]) if text else ""


def find_setting(scores: DataFrame, label: str, where: str) -> Setting:
    """The setting with this label; `where` begins the error if there is none."""
    there = settings_in(scores)
    for one in there:
        if one.label == label:
            return one
    near = nearest(label, [one.label for one in there])
    hint = f"; the nearest is {near!r}" if near else ""
    raise RankfallError(
        f"{where}: there is no setting {label!r}; there is: {'; '.join(one.label for one in there)}{hint}"
    )


def rows_at(scores: DataFrame, setting: Setting) -> DataFrame:
    """The architectures of a setting."""
    return scores[scores.setting == setting.label]


def check_one(rows: DataFrame, setting: Setting) -> None:
    """Raise unless all rows are of this setting."""
    others = [label for label in rows.setting.unique() if label != setting.label]
    if others:
        raise RankfallError(
            f"numbers of one setting are compared, and here {setting.label!r} meets {others[0]!r}: "
            "take the rows of one (rows_at)"
        )

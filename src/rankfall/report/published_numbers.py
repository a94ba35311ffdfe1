"""Published numbers, each with the rows of our table that measure the same, from the file `published.csv` of a quantity's folder.

    # a comment: how they were read
    source paper: Dong et al. 2021; Attention is not all you need; https://arxiv.org/abs/2103.03404
    setting sorting: task_component=sorting(length=8);depth=6
    name,published,tolerance,column,where
    accuracy of paths of length 1,0.6,0.05,accuracy,kind=path;length=1

Five columns are needed, in any order. Without others, the number is `measured` and ours has to be `equal`; the source and the setting are
those above the header if there is one of each.

- source: a word for the paper or code, which a line above the header explains by a name, a title and a link;
- place: figure or section; what: what the number is;
- kind: measured (a number the paper measured), typed (a constant in a script), claimed (a statement, or what a picture shows), exact (by a
  formula);
- sense, tolerance: the expected relation of our number to it (`overview/reproduction/measure.py` defines each);
- column, where: the number in our table, and its rows, `column=value;column=value`; for a component only the options that matter,
  `task_component=circle(skip=none)`; `value|value` for several; null;
- less, over: conditions of other rows whose number is subtracted or divided by (an empty value: anything); least: selects, from settings
  that differ in this column only, the one with the least number; within: largest absolute values of columns; by: columns that always
  distinguish our settings;
- setting: the setting it was measured in, one of those above the header, or any. A comparison is like with like if our setting matches this
  one exactly: for trained networks it has every field of task, architecture and training, and every option of each component, with `any`
  for values that the number itself states or that nothing reads.

Two lines of `shown.py` in the same folder add the file to the quantity:

    DATA = ["rank/paths/published.csv"]  # in a user's module: ["published.csv"]
    PUBLISHED = read_published(__file__)
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rankfall import components
from rankfall.errors import RankfallError, suggest
from rankfall.report.quantities import sources, user_quantities

ANY = "any"
NEEDED = ("name", "published", "tolerance", "column", "where")
FIELDS = (*NEEDED, "source", "place", "what", "kind", "sense", "less", "over", "least", "within", "setting", "by")
KINDS = ("measured", "typed", "claimed", "exact")
SENSES = ("equal", "magnitude", "floor", "above", "below", "all above", "all below")
SETTING, SOURCE = "setting ", "source "
PAPER = ("source_name", "source_title", "source_link")


def published_numbers() -> Iterator[dict[str, Any]]:
    """Yield the published numbers of all quantities, including those of users, with the quantity as `table`. Each word for a source must
    mean the same paper everywhere."""
    papers: dict[str, tuple[list[str], str]] = {}
    for quantity in sources("published", user_quantities()):
        for value in components.load("published", quantity):
            paper = [value[column] for column in PAPER]
            first, where = papers.setdefault(value["source"], (paper, quantity))
            if first != paper:
                raise RankfallError(
                    f"published numbers of {quantity}: source {value['source']!r} is {'; '.join(paper)}, but in {where} it is "
                    f"{'; '.join(first)}\nuse another word for one of them in its published.csv"
                )
            yield value | {"table": quantity}


def read_published(beside: str, name: str = "published.csv") -> tuple[dict[str, Any], ...]:
    """Read the file beside a module; each row has the conditions of its setting in `at`."""
    file = Path(beside).with_name(name)
    lines = [
        line for line in file.read_text(encoding="utf-8").splitlines() if line.strip() and not line.startswith("#")
    ]
    settings, papers = {ANY: ""}, {}
    while lines and lines[0].startswith((SETTING, SOURCE)):
        kind, _, definition = lines.pop(0).partition(" ")
        word, _, text = (part.strip() for part in definition.partition(":"))
        if kind == SETTING.strip():
            settings[word] = text
        else:
            papers[word] = [part.strip() for part in text.split(";")]
            if len(papers[word]) != len(PAPER) or not all(papers[word]):
                raise RankfallError(
                    f"{file}: source {word!r} is explained by {text!r}\nwrite a name, a title and a link between semicolons: "
                    f"source {word}: Author 2021; Title; https://..."
                )
    reader = csv.DictReader(lines)
    columns = list(reader.fieldnames or ())
    if problems := [f"lacks {column}" for column in NEEDED if column not in columns] + [
        f"has {column!r}{suggest(str(column), list(FIELDS))}" for column in columns if column not in FIELDS
    ]:
        raise RankfallError(
            f"{file}: its header {'; '.join(problems)}\ncolumns are {', '.join(FIELDS)}; the first five are needed"
        )
    declared = {"source": [*papers], "setting": [*settings][1:] or [ANY]}  # left out where there is only one
    defaults = dict.fromkeys(FIELDS, "") | {"kind": "measured", "sense": "equal"}
    defaults |= {name: words[0] for name, words in declared.items() if len(words) == 1}
    return tuple(_check_row(defaults | {"what": row["name"]} | row, settings, papers, file) for row in reader)


def _check_row(
    row: dict[str, Any], settings: dict[str, str], papers: dict[str, list[str]], file: Path
) -> dict[str, Any]:
    """Return a row with numbers as floats, and with its setting and source; raise an error if a field is not allowed."""
    where = f"{file}, {row['name']!r}"
    if None in row.values() or None in row:
        raise RankfallError(f"{where}: it has more or fewer fields than the header; put a field with a comma in quotes")
    declared = {"kind": KINDS, "sense": SENSES, "setting": settings, "source": papers}
    for name, allowed in declared.items():
        if row[name] not in allowed:
            hint = suggest(row[name], list(allowed))
            above = "; a source or a setting is explained above the header" if name in ("source", "setting") else ""
            raise RankfallError(
                f"{where}: {name} {row[name]!r} is unknown{hint}\nknown are {', '.join(allowed)}{above}"
            )
    for name in ("published", "tolerance"):
        try:
            row[name] = float(row[name])
        except ValueError:
            raise RankfallError(f"{where}: {name} {row[name]!r} is not a number") from None
    return row | {"at": settings[row["setting"]]} | dict(zip(PAPER, papers[row["source"]]))

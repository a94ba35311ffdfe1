"""A quantity of a user, as a folder of files that nothing of the package names: what `docs/components/measure.md` shows in one file."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rankfall.report.quantities import set_user_quantities

FILES = {
    "__init__.py": '"""Entropy of attention."""\n',
    "measure.py": '''
"""Entropy of attention: 0 where every token looks at one other, log T where all look everywhere alike."""

import torch

TABLE = "mylab.entropy"
USES = ("weights",)


@torch.no_grad()
def entropy(context, *, samples: int = 4):
    rows = []
    x = context.network.lift(context.data.test.inputs[:, :samples])
    for layer, block in enumerate(context.network.blocks, 1):
        weights = block.attention.weights(x if block.placement == "post" else block.norm1(x))
        rows.append({"layer": layer, "entropy": float(torch.special.entr(weights.double()).sum(-1).mean())})
        x = block(x)
    return rows
''',
    "shown.py": '''
from rankfall import Chart, Column, Headline, Table, ask_range, column_as_numbers, last_layer


def columns() -> Table:
    return Table(
        "mylab.entropy",
        "a cell x layer",
        (Column("layer", "int", "1 is the first block"), Column("entropy", "float", "of a row of attention weights", unit="nats")),
        key=("layer",),
    )


def entropy_of_rows(rows):
    return column_as_numbers(rows, "entropy")


HEADLINES = (
    Headline(name="entropy_last", title="entropy at the last layer", meaning="entropy of attention weights in the last block",
             columns=("layer", "entropy"), rows=last_layer, number=entropy_of_rows, unit="nats", good=None, study="rank"),
)
CHARTS = (
    Chart(name="entropy", title="Entropy of attention by layer", text="How many tokens a token looks at.", x="layer", y="entropy",
          x_title="layer", y_title="entropy (nats)", within=(0, None), study="rank"),
)
SENTENCES = (ask_range("Who looks at most tokens?", "entropy_last", "entropy at the last layer is largest in", unit="nats"),)
''',
    "figure.py": '''
"""Entropy of attention by layer."""

from rankfall import Picture, colours_of, draw_lines

TABLES = ["mylab.entropy"]


def entropy(read) -> Picture:
    """A line an architecture."""
    table = read("mylab.entropy")
    grid = draw_lines(table, "layer", "entropy", "architecture", colours_of(sorted(table.architecture.unique())))
    return Picture(grid.figure, "Entropy of attention by layer.")
''',
}  # fmt: skip
CONFIG = {
    "measures": {"entropy": {"measure": "mylab.entropy"}, "scorecard": {}},
    "figures": {"entropy": {"figure": "mylab.entropy"}},
}


@pytest.fixture(autouse=True)
def import_from_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Modules of users lie in the test's folder, and what a plan has found of them is forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    yield
    forget_own()


def forget_own() -> None:
    """The next test has other modules of the same names, in another folder."""
    set_user_quantities([])
    for name in [name for name in sys.modules if name.partition(".")[0] in ("mylab", "lab")]:
        del sys.modules[name]


def write(folder: Path) -> Path:
    """As `mylab.entropy` in a folder."""
    place = folder / "mylab" / "entropy"
    place.mkdir(parents=True)
    for name, text in FILES.items():
        (place / name).write_text(text)
    return place

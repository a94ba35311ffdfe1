"""Guards that options of components outside the package mean what their authors say: names of ours bound none of theirs, defaults can be
written, tuples are read item by item; and that what is wrong in such a file is told.
"""

from pathlib import Path
from typing import Any

import pytest
from plans import changed, refusal

from rankfall.run.plan import make_plan

MEASURE = """
{facts}

def measure(context, *, {options}):
    return []

def columns():
    from rankfall.report.schema import Column, Table
    return Table({module!r}, "a row", (Column("layer", "int", "any"),), key=("layer",))

def figure(read, *, {options}): ...
"""


def quantity(folder: Path, name: str, options: str, facts: str = "") -> str:
    """A user's quantity in one file: measure, table and figure, whose options are the same."""
    facts = f"TABLE = {name!r}\nTABLES = [{name!r}]\n{facts}"
    (folder / f"{name.replace('.', '/')}.py").write_text(MEASURE.format(module=name, facts=facts, options=options))
    return name


def measured(name: str, **options: Any) -> dict[str, Any]:
    return changed("measures", {"one": {"measure": name, **options}})


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "optlab").mkdir()
    (tmp_path / "optlab" / "__init__.py").touch()
    return tmp_path


def test_floats_and_lists_of_others_have_no_bounds(lab: Path) -> None:
    """`width` may be in inches, and `lr` a slope. A list may be left empty, though it has entries by default."""
    options = "width: float = 1.0, lr: float = 0.1, seed: int = -1, shown: list[str] = ['a']"
    written = {"width": -2.5, "lr": -2.5, "seed": -7, "shown": []}
    name = quantity(lab, "optlab.names", options)
    assert make_plan(measured(name, **written)).measures["one"].options == written


def test_defaults_can_be_written(lab: Path) -> None:
    """An integer is not negative unless its default, or LIMITS, say that it may be."""
    defaults = {"seed": -1, "steps": 0, "offsets": [-1, 0, 1], "rate": -0.1, "count": None, "other": 3}
    options = "seed: int = -1, steps: int = 0, offsets: list[int] = [-1, 0, 1], rate: float = -0.1"
    options += ", count: int | None = None, other: int = 3"
    name = quantity(lab, "optlab.defaults", options)
    keys = {make_plan(config).measures["one"].key for config in (measured(name), measured(name, **defaults))}
    assert len(keys) == 1
    assert make_plan(measured(name, seed=-2, offsets=[-7])).measures["one"].options["offsets"] == [-7]
    for option in ("count", "other", "steps"):
        message = refusal(measured(name, **{option: -1}))
        assert message == f"measures.one.{option}: -1 is out of range; allowed: >= 0"

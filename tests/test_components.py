"""Guards how components are found, read and loaded."""

import sys
from pathlib import Path
from typing import Any

import pytest

from rankfall import components


def test_a_description_has_options_and_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    text = (
        "from token import NAME\nCOUNT = 3\nFACT: list = [1]\nCOMPUTED = COUNT + 1\nOPAQUE = object()\n"
        "class Sharp:\n    def __init__(self, sizes, *, power: float = 2.0, need: 'int', late=COMPUTED, rest=OPAQUE): ...\n"
    )
    (tmp_path / "describelab.py").write_text(text)
    found = components.describe("norm", "describelab:Sharp")
    assert found is not None
    assert dict(found.facts) == {"COUNT": 3, "FACT": [1], "COMPUTED": 4}
    assert "describelab" not in sys.modules
    power, need, late, rest = found.options.values()
    assert (power.type, power.default, power.required, power.plain) == (float, 2.0, False, True)
    assert (need.type, need.required, need.plain) == (int, True, False)
    assert (late.type, late.default, late.required) == (Any, 4, False)
    assert (rest.required, rest.plain) == (False, False)
    (tmp_path / "describelab.py").write_text("class Sharp: pass\n# longer\n")
    again = components.describe("norm", "describelab:Sharp")
    assert again is not None
    assert not again.options


def test_the_page_lists_every_part_of_a_layer() -> None:
    listed = (Path(__file__).parents[1] / "docs" / "components" / "shipped.md").read_text()
    around = ("residual", "block", "norm", "mlp", "init")
    for kind in ("attention", "normaliser", "position", "mask", "sentinels", *around):
        assert not [name for name in components.names(kind) if f"`{name}`" not in listed]

"""Guards what `rankfall plan` warns of."""

import json
from pathlib import Path

import pytest
from plans import VALID, changed

from rankfall import cli


def test_a_mask_that_hides_what_answers_need_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The best accuracy of a causal network on sorting was said to be 1."""
    near = {"mask": {"name": "local", "window": 4}}  # of five tokens: all
    path = tmp_path / "c.json"
    for masks, count in (({"san": {"mask": "causal"}, "full": near}, 1), ({"san": {}, "full": near}, 0)):
        path.write_text(json.dumps(changed("architectures", masks, VALID)))
        assert cli.main(["plan", "--config", str(path), "--results", str(tmp_path)]) == 0
        found = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning: ")]
        assert len(found) == count
        assert all(
            "the mask causal" in line and "on sorting" in line and line.endswith(": san, depth 2, 4") for line in found
        )
    assert cli.main(["plan", "--config", str(path), "--results", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ceilings"] == []

"""Guards docs/check.md: its file is made, its commands and its examples run, and what it says of the model is what comes out."""

import re
import shlex
from pathlib import Path

import pytest

from rankfall.check.named import all_checks
from rankfall.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "check.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "mymodel.py").write_text(PYTHON[0])
    (tmp_path / "config.yaml").write_text((ROOT / "config.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "command", [pytest.param(command, marks=[pytest.mark.long] * ("bands add" in command)) for command in COMMANDS]
)
def test_every_command_of_the_page_runs(command, folder, capsys, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    words = shlex.split(command, comments=True)
    assert words[0] == "rankfall" and words[1] in ("check", "bands")
    assert main(words[1:]) == (1 if "status 1" in command else 0)
    out = capsys.readouterr().out
    assert ("residual additions" if words[1] == "check" else "of width" if words[2:] == [] else '"residual":[') in out
    if command == COMMANDS[0]:
        lines, below = re.findall(r"```\n(mymodel.py:build: .*?)\n```.*?```\n(.*?)\n```", PAGE, re.DOTALL)[0]
        found, stated = (float(re.findall(r"(\S+) in bfloat16", text)[0]) for text in (out, lines))
        assert 0.5 * stated < found < 2 * stated  # the processor decides how sums in bfloat16 are rounded
        same = (re.sub(r"\S+ in bfloat16", "", text) for text in (out, lines))
        assert next(same).startswith(next(same)) and out.strip().endswith(below)
        headings = next(line for line in out.splitlines() if line.startswith("layer")).split("  ")
        shown = {heading.strip() for heading in headings} - {"", "layer"}
        table = PAGE[PAGE.index("| column |") : PAGE.index("A column that has no value")]
        assert shown <= set(re.findall(r"`([^`]+)`", table))


def test_the_page_has_every_check_with_its_limits_and_their_origin():
    for check in all_checks():
        (row,) = re.findall(rf"^\| `{check.name}` \| (.*)\|$", PAGE, re.MULTILINE)
        assert row.startswith(check.explanation.partition("\n")[0])
        assert all(f"{limit:g}: {limit.meaning} *({limit.origin})*" in row for limit in check.limits)

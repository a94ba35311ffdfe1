"""Guards what the command line calls itself, and that it imports nothing that a number depends on before it can tell from which text."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from plans import changed, refusal
from rich.console import Console

from rankfall import cli
from rankfall.run.screen.words import error_in
from rankfall.terminal import Cleaning


@pytest.mark.parametrize("words", [["measure", "model"], ["model"], ["compare"]])
def test_help_names_the_command_that_was_typed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([*words, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: rankfall {' '.join(words)} ")


def test_a_job_that_a_fork_does_imports_little_to_ask_for_it() -> None:
    """There are hundreds of them in a run, each a Python of its own."""
    listed = "import sys, rankfall.cli; print(*sys.modules)"
    names = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True).stdout.split()
    assert {"rankfall.cli", "rankfall.run.forks.client"} <= {*names}
    assert not {"argparse", "ast", "dataclasses", "importlib.util", "inspect", "pathlib", "rankfall.errors"} & {*names}


@pytest.mark.parametrize("words", [[], ["--", "-n"], ["--", "--unlock"]])
@pytest.mark.parametrize("what", ["missing", "a folder", "no YAML"])
def test_a_run_says_of_a_configuration_that_cannot_be_read_what_a_plan_says(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], what: str
) -> None:
    config = tmp_path / "given.yaml"
    if what == "a folder":
        config.mkdir()
    elif what == "no YAML":
        config.write_text("tasks: [")
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("Snakemake was started"))
    said = []
    for command in (["plan", "--config", str(config)], ["run", "--config", str(config), *words]):
        assert cli.main(command) == 2
        said.append("".join(capfd.readouterr()))
    assert said[0] == said[1] and said[0].count("\n") == 1 and said[0].startswith(f"error: {config}")


STEERS = "a\x1b]0;title\x07\x1b[2J\x9b1m\u202eb\r"


def test_no_name_steers_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of files, keys, entries, options and components, and in what jobs write into their logs."""
    config = tmp_path / "c.json"
    for path, value in {
        "name": STEERS,
        "tasks/sorting/task": f"{STEERS}:x",
        "figures": {"paths": {"panels": {STEERS: ["san"]}}},
        STEERS: {},
        "a\nb": {},
    }.items():
        config.write_text(json.dumps(changed(path, value)))
        assert cli.main(["plan", "--config", str(config), "--results", str(tmp_path)]) == 2
        assert refusal(changed(path, value)).isprintable()
    assert cli.main(["plan", "--config", STEERS]) == 2
    with pytest.raises(SystemExit):
        cli.main(["plan", f"--{STEERS}"])
    said = "".join(capsys.readouterr())
    assert not any(sign in said for sign in "\x1b\x07\x9b\u202e\r") and "\\x1b" in said
    (tmp_path / "job.log").write_text(f"ValueError: {STEERS}\n")
    assert error_in(tmp_path / "job.log").isprintable()


def test_colours_reach_the_terminal() -> None:
    out = io.StringIO()
    Console(file=Cleaning(out), force_terminal=True, color_system="standard").print("[red]x[/]")  # type: ignore[arg-type]
    assert out.getvalue() == "\x1b[31mx\x1b[0m\n"


def test_the_help_of_measure_names_the_way_to_measure_one_model(capsys):
    with pytest.raises(SystemExit):
        cli.main(["measure", "--help"])
    assert "measure model NAME" in " ".join(capsys.readouterr().out.split())

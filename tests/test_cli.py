"""Guards what the command line calls itself, and that it imports nothing that a number depends on before it can tell from which text."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rankfall import cli


@pytest.mark.parametrize("words", [["measure", "model"], ["model"], ["compare"]])
def test_help_names_the_command_that_was_typed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([*words, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: rankfall {' '.join(words)} ")


@pytest.mark.parametrize(
    ("words", "said"), [(["plna"], "did you mean 'plan'?"), (["plan", "--confg", "a.yaml"], "did you mean '--config'?")]
)
def test_a_typo_in_a_verb_or_a_flag_gets_a_suggestion(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 2
    assert said in capsys.readouterr().err


def test_a_plan_in_a_wrong_folder_says_to_go_to_the_project(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["plan"]) == 2
    assert "cd to your project, or pass --config FILE" in capsys.readouterr().err


# What a program does, and what it must not import: a user waits for it, or there are hundreds of it in a run.
LITTLE = {
    "the package": ("import rankfall; assert 'residuals' in dir(rankfall)", "torch numpy pandas transformers"),
    "a job that a fork does": (
        "import rankfall.cli, rankfall.run.forks.client",
        "argparse ast dataclasses importlib.util inspect pathlib rankfall.errors",
    ),
    "the declarations": (
        "from rankfall.report.quantities import declarations_of as of; of('headline'), of('chart')",
        "torch matplotlib pandas scipy",
    ),
    "the list of verbs": (
        "import rankfall.cli\ntry: rankfall.cli.main(['--help'])\nexcept SystemExit: pass",
        "rankfall.commands",
    ),
}


@pytest.mark.parametrize("what", LITTLE)
def test_little_is_imported(what: str) -> None:
    program, heavy = LITTLE[what]
    listed = f"{program}\nimport sys; print(*({{*'{heavy}'.split()}} & sys.modules.keys()), '.')"
    done = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].strip() == "."


@pytest.mark.parametrize(("what", "words"), [("missing", []), ("a folder", ["--", "-n"]), ("no YAML", [])])
def test_a_run_says_of_a_configuration_that_cannot_be_read_what_a_plan_says(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, what: str, words: list[str]
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

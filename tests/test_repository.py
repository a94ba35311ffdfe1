"""Guards the files around the code: what GitHub, pre-commit and those who cite read, and that they say the same as the package."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import rankfall

ROOT = Path(__file__).parents[1]


def load(name):
    return yaml.safe_load((ROOT / name).read_text())


def test_every_file_says_the_same_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert project["version"] == load("CITATION.cff")["version"] == headings[0] == rankfall.__version__
    assert f'tag="v{rankfall.__version__}"' in (ROOT / "config" / "README.md").read_text()


def test_a_citation_has_what_its_format_needs():
    citation = load("CITATION.cff")
    assert {"cff-version", "message", "title", "authors", "type", "license"} <= set(citation)
    assert citation["authors"]
    assert all({"title", "authors", "year", "type"} <= set(reference) for reference in citation["references"])


def test_actions_run_the_one_script():
    jobs = load(".github/workflows/ci.yml")["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    assert [step["run"] for step in steps if "run" in step] == ["bash .ci/run"]
    pythons = jobs["checks"]["strategy"]["matrix"]["python"]
    assert pythons[0] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].lstrip(">=")


def test_hooks_are_tools_of_the_environment_that_the_script_uses():
    pytest.importorskip("pre_commit")
    command = [sys.executable, "-m", "pre_commit", "validate-config", str(ROOT / ".pre-commit-config.yaml")]
    assert subprocess.run(command, capture_output=True, text=True).returncode == 0
    (repository,) = load(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"  # nothing is fetched
    script = (ROOT / ".ci" / "run").read_text()
    for hook in repository["hooks"]:
        tool = hook["entry"].split()[0]
        assert tool.startswith(".venv/bin/")
        assert tool in script or tool == ".venv/bin/python"


@pytest.mark.parametrize("file", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md")), ids=lambda path: path.name)
def test_an_issue_template_has_a_head_and_names_verbs_that_exist(file):
    _, head, body = file.read_text().split("---\n", 2)
    assert {"name", "about"} <= set(yaml.safe_load(head))
    verbs = {path.stem for path in (ROOT / "src" / "rankfall" / "commands").glob("[a-z]*.py")}
    assert set(re.findall(r"`rankfall (\w+)", body)) <= verbs

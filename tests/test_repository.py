"""Guards the files around the code: what GitHub, pre-commit and those who cite read, and that they say the same as the package."""

import re
import tomllib
from pathlib import Path

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

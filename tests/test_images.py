"""Guards the container recipes: both install the pins that `make setup` installs, and copy files that exist.

That these pins install into a clean prefix, and that what they give passes the tests, is what .ci/run begins with.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECIPES = ("Dockerfile", "rankfall.def")


def recipe(name: str) -> str:
    return (ROOT / "envs" / name).read_text().replace("\\\n", " ")


@pytest.mark.parametrize("name", RECIPES)
def test_every_installation_is_pinned(name: str) -> None:
    lines = re.findall(r"pip install[^\n&]*", recipe(name))
    assert len(lines) == 2
    assert all("-c /opt/rankfall/constraints.txt" in line for line in lines)
    assert "/opt/rankfall[workflow,models]" in lines[-1]


@pytest.mark.parametrize("name", RECIPES)
def test_copied_files_exist(name: str) -> None:
    if name == "Dockerfile":
        sources = [word for line in re.findall(r"^COPY (.*) \S+$", recipe(name), re.MULTILINE) for word in line.split()]
    else:
        sources = re.findall(r"^    (\S+) /opt/rankfall\S*$", recipe(name), re.MULTILINE)
    assert {"envs/constraints.txt", "pyproject.toml", "src"} <= set(sources)
    assert all((ROOT / source).exists() for source in sources)


def test_both_begin_with_the_same_image_and_the_pinned_python() -> None:
    images = {re.search(r"^(?:FROM|From:) (\S+)", recipe(name), re.MULTILINE)[1] for name in RECIPES}  # type: ignore[index]
    assert len(images) == 1
    python = re.search(r"- python=([\d.]+)", (ROOT / "envs" / "environment.yaml").read_text())
    assert python and images.pop().startswith(f"python:{python[1]}-")

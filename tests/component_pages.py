"""The examples of docs/components/: files of a lab, and what a configuration says of them."""

from pathlib import Path
from typing import Any

import yaml

from rankfall.project import ENTRIES, FILE

FOLDER = Path(__file__).parents[1] / "docs" / "components"
NAMES = sorted(page.stem for page in FOLDER.glob("*.md"))


def text(page: str) -> str:
    return (FOLDER / f"{page}.md").read_text()


def blocks(page: str) -> list[tuple[str, str]]:
    """Return the file and the code of each example of a page, in order."""
    return FILE.findall(text(page))


def files(*pages: str) -> dict[str, str]:
    """Return the files of pages, complete."""
    found: dict[str, str] = {}
    for page in pages:
        for name, code in blocks(page):
            found[name] = f"{found[name]}\n\n{code}" if name in found else code
    return found


def entries(*pages: str) -> dict[str, Any]:
    """Return the entries of a configuration that pages show, by section."""
    found: dict[str, Any] = {}
    for page in pages:
        for written in map(yaml.safe_load, ENTRIES.findall(text(page))):
            for section, named in written.items():
                found.setdefault(section, {}).update(named)
    return found


def components(page: str) -> list[tuple[str, Any]]:
    """Return the kind of each component of a lab that a page's configuration names, and how it is written there."""
    found: list[tuple[str, Any]] = []
    for section, named in entries(page).items():
        for entry in named.values() if section in ("architectures", "trainings") else ():
            found += [(kind, value) for kind, value in entry.items() if "lab." in str(value)]
        for entry in named.values() if section == "tasks" else ():
            found.append(
                ("task", {"name": entry["task"]} | {key: value for key, value in entry.items() if key != "task"})
            )
    return found


def write(folder: Path, some: dict[str, str]) -> None:
    for name, code in some.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code)

"""Examples of components, as the pages of docs/components/ show them: files of Python, and the entries of a configuration that use them."""

import re
from dataclasses import dataclass
from pathlib import Path

from rankfall.errors import RankfallError, suggest
from rankfall.project import SHIPPED

FOLDER = SHIPPED / "examples"
# Text that continues a file repeats its name.
FILE = re.compile(r"`(lab/[\w/]+\.(?:py|yaml|csv))`:\n\n```(?:python|yaml|csv)\n(.*?)```", re.DOTALL)
ENTRIES = re.compile(r"(?<!`:\n\n)```yaml\n(.*?)```", re.DOTALL)


@dataclass(frozen=True)
class ComponentExample:
    """The first example of a page: its files by path, and the entries of a configuration, as text."""

    files: dict[str, str]
    entries: str


def kinds() -> list[str]:
    """Return the kinds of components that have an example."""
    pages = {page.stem: page.read_text() for page in FOLDER.glob("*.md")}
    return sorted(kind for kind, text in pages.items() if kind != "index" and FILE.search(text))


def example(kind: str) -> ComponentExample:
    """Return the first example of a kind: all files in the folder of the first one, and the entries that follow them."""
    if kind not in kinds():
        raise RankfallError(f"there is no example of {kind!r}{suggest(kind, kinds())}; there are: {', '.join(kinds())}")
    text = (FOLDER / f"{kind}.md").read_text()
    entries = ENTRIES.search(text)
    before = text[: entries.start()] if entries else text
    return ComponentExample(dict(FILE.findall(before)), entries[1] if entries else "")


def rename(shown: ComponentExample, target: Path) -> ComponentExample:
    """Return the example with its file at `target`, a path such as mylab/sharp.py. The entries name the new module."""
    if len(shown.files) > 1:
        raise RankfallError(f"this example has {len(shown.files)} files ({', '.join(shown.files)}): leave the path out")
    if (
        target.suffix != ".py"
        or target.is_absolute()
        or not all(part.isidentifier() for part in target.with_suffix("").parts)
    ):
        raise RankfallError(f"{target} is no module of this folder: write a path such as mylab/sharp.py")
    ((path, code),) = shown.files.items()
    before, after = (".".join(Path(file).with_suffix("").parts) for file in (path, target))
    return ComponentExample(
        {str(target): code.replace(before, after)}, re.sub(rf"\b{re.escape(before)}\b", after, shown.entries)
    )

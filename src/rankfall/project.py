"""Find what a project needs of this package: the workflow, presets and examples of components.

All of it is in `shipped/`: the Snakefile, rules, profiles, presets, and the pages of docs/components/, which have the examples: files of
Python, and the entries of a configuration that use them. In a checkout these are links to the files at its top.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rankfall.errors import RankfallError, suggest

SHIPPED = Path(__file__).parent / "shipped"
SNAKEFILE = SHIPPED / "Snakefile"  # what a project's own Snakefile includes
DEFAULT_PROFILE = Path("workflow/profiles/default")
NAMES = ("Snakefile", "snakefile", "workflow/Snakefile")  # where Snakemake looks
EXAMPLES = SHIPPED / "examples"
# A file of an example. Text that continues a file repeats its name.
FILE = re.compile(r"`(lab/[\w/]+\.(?:py|yaml|csv))`:\n\n```(?:python|yaml|csv)\n(.*?)```", re.DOTALL)
ENTRIES = re.compile(r"(?<!`:\n\n)```yaml\n(.*?)```", re.DOTALL)


def check_folder(folder: Path) -> None:
    """Raise an error unless Snakemake finds a workflow in the folder."""
    if not any((folder / name).is_file() for name in NAMES):
        raise RankfallError(
            f"there is no Snakefile in {folder}: run this in a checkout of Rankfall or in a project\n"
            "  fix: cd there; `rankfall init FOLDER` makes a project; `rankfall plan --script` lists all jobs for bash"
        )


def find_profile(profile: Path) -> Path:
    """Return the folder of a profile. A project without a default profile of its own has the package's."""
    if profile == DEFAULT_PROFILE and not profile.is_dir():
        return SHIPPED / DEFAULT_PROFILE
    return profile


def is_checkout() -> bool:
    """Return whether the working directory is a checkout of Rankfall, which has a Makefile."""
    return Path("src", "rankfall").is_dir()


def run_command(config: Path = Path("config.yaml"), profile: Path = DEFAULT_PROFILE, more: Sequence[str] = ()) -> str:
    """Return the command that runs a configuration: `make run` in a checkout, `rankfall run` in a project."""
    if not is_checkout():
        words = ["rankfall run"]
        words += [f"--config {shlex.quote(str(config))}"] * (str(config) != "config.yaml")
        words += [f"--profile {shlex.quote(str(profile))}"] * (profile != DEFAULT_PROFILE)
        return " ".join([*words, *(["--", shlex.join(more)] if more else [])])
    words = ["make run"]
    words += [f"CONFIG={shlex.quote(str(config))}"] * (str(config) != "config.yaml")
    words += [f"PROFILE={shlex.quote(str(profile))}"] * (profile != DEFAULT_PROFILE)
    words += [f"ARGS={shlex.quote(shlex.join(more))}"] * bool(more)
    return " ".join(words)


def presets() -> list[str]:
    """Return the names of the configurations that come along."""
    return sorted(path.stem for path in (SHIPPED / "workflow" / "presets").glob("*.yaml"))


def preset_file(name: str) -> Path:
    """Return the file of a preset."""
    if name not in presets():
        raise RankfallError(f"there is no preset {name!r}; there are: {', '.join(presets())}")
    return SHIPPED / "workflow" / "presets" / f"{name}.yaml"


@dataclass(frozen=True)
class ComponentExample:
    """The first example of a page: its files by path, and the entries of a configuration, as text."""

    files: dict[str, str]
    entries: str


def example_kinds() -> list[str]:
    """Return the kinds of components that have an example."""
    pages = {page.stem: page.read_text() for page in EXAMPLES.glob("*.md")}
    return sorted(kind for kind, text in pages.items() if kind != "index" and FILE.search(text))


def example(kind: str) -> ComponentExample:
    """Return the first example of a kind: all files in the folder of the first one, and the entries that follow them."""
    if kind not in example_kinds():
        raise RankfallError(
            f"there is no example of {kind!r}{suggest(kind, example_kinds())}; there are: {', '.join(example_kinds())}"
        )
    text = (EXAMPLES / f"{kind}.md").read_text()
    entries = ENTRIES.search(text)
    before = text[: entries.start()] if entries else text
    return ComponentExample(dict(FILE.findall(before)), entries[1] if entries else "")


def rename_example(shown: ComponentExample, target: Path) -> ComponentExample:
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

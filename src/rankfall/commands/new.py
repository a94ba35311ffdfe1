"""Write an example of a component of your own, which runs as it is, and show its entry in the configuration."""

import argparse
from pathlib import Path

from rankfall.project import example, example_kinds, rename_example

ARGUMENTS = f"""
KIND     one of {", ".join(example_kinds())}
[FILE]   the file to write, mylab/sharp.py; by default that of the documentation
"""


def run(args: argparse.Namespace) -> int:
    shown = example(args.kind)
    if args.file is not None:
        shown = rename_example(shown, args.file)
    write_new(Path(), shown.files)
    for name in shown.files:
        print(f"{name} is written")
    print(f"add to config.yaml, and name it in the grid where it is part of a network:\n\n{shown.entries.rstrip()}")
    return 0


def write_new(folder: Path, files: dict[str, str]) -> None:
    """Write files that must not exist yet: all of them or none."""
    from rankfall.disk import write
    from rankfall.errors import RankfallError

    for name in files:
        if (folder / name).exists():
            raise RankfallError(f"{folder / name} exists: name another file, or remove this one; nothing is written")
    for name, text in files.items():
        write(folder / name, text)

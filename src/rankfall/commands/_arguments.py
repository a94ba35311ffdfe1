"""The arguments of a verb, as its help lists them: one a line with its name, its value, two spaces, and what it does.

A value in brackets may be left out, one with dots may be several. `FILE` and `FOLDER` are paths, `N` is an integer, `X` a number, and `a|b`
one of these words. What it does may end with its default, with `(required)` or with `(repeatable)`.
"""

import argparse
import re
from pathlib import Path
from typing import Any

TYPES: dict[str, Any] = {"FILE": Path, "FOLDER": Path, "N": int, "X": float}


def add_arguments(parser: argparse.ArgumentParser, listing: str) -> None:
    """Add the arguments of such a listing. An argument without `--` is stored under its value in small letters."""
    for line in filter(None, re.sub(r"\n {5,}", " ", listing).split("\n")):
        words, text = re.split(" {2,}", line, maxsplit=1)
        option, _, value = words.rpartition(" ")
        keywords: dict[str, Any] = {"help": text.replace("%", "%%")}
        if value.startswith("--"):
            parser.add_argument(value, action="store_true", **keywords)
            continue
        name = value.strip("[].")
        kind = TYPES.get(name, str)
        keywords |= {"choices": name.split("|")} if "|" in name else {"metavar": name, "type": kind}
        if text.endswith("(required)"):
            keywords["required"] = True
        if text.endswith("(repeatable)"):
            keywords |= {"action": "append", "default": []}
        elif "..." in value:
            keywords |= {"nargs": "*" if "[" in value else "+", "default": []}
        elif "[" in value:
            keywords["nargs"] = "?"
        if default := re.search(r"\(default: ([^ ,)]+)", text):
            keywords["default"] = kind(default[1])
        parser.add_argument(option or name.lower(), **keywords)

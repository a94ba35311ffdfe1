"""Text in reStructuredText, of which Snakemake makes `report.html`: whatever it says, it is read as words, and never as markup."""

import re

MARKED = re.compile(r"([^\w\s]|_)")  # all that is no letter, digit or space, wherever it stands


def escape(text: str) -> str:
    """One paragraph that a reader of reStructuredText sees as it was: no directive, role, link, list, heading or substitution."""
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return MARKED.sub(r"\\\1", " ".join(printable.split()))


def unescape(text: str) -> str:
    """The text that `escape` was given, in one line."""
    return re.sub(r"\\(.)", r"\1", text)

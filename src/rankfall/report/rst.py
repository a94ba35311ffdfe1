"""Text in reStructuredText, of which Snakemake makes `report.html`: whatever it says, it is read as words, and never as markup."""

import re

# What begins or ends markup within a line, or a link, what Snakemake's templates begin with, and what makes a list, a directive or a table
# of a line that begins with it. All else stands as it is: captions are also read as files.
MARKED = re.compile(r"[\\`*|_@{]|(?<=\{)[%#]|:(?!\s)|^[^\w\s]")
NUMBERED = re.compile(r"^([^\W_]+)(?=[.)](\s|$))")  # such as `12. ` or `iv) `: a list


def escape(text: str) -> str:
    """One paragraph that a reader of reStructuredText sees as it was: no directive, role, link, list, heading or substitution."""
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return NUMBERED.sub(r"\1\\", MARKED.sub(r"\\\g<0>", " ".join(printable.split())))


def unescape(text: str) -> str:
    """The text that `escape` was given, in one line."""
    return re.sub(r"\\(.)", r"\1", text)

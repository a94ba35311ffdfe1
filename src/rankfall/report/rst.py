"""Escaping of text for reStructuredText, from which Snakemake builds `report.html`, so that it is never read as markup."""

import re

# Characters that begin or end inline markup, links or Snakemake's templates, or that begin a list, directive or table at the start of a
# line. Others are not escaped, because captions are also read as files.
MARKED = re.compile(r"[\\`*|_@{]|(?<=\{)[%#]|:(?!\s)|^[^\w\s]")
NUMBERED = re.compile(r"^([^\W_]+)(?=[.)](\s|$))")  # such as `12. ` or `iv) `: a list


def escape(text: str) -> str:
    """Return text as a single paragraph of reStructuredText, without directives, roles, links, lists, headings or substitutions."""
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return NUMBERED.sub(r"\1\\", MARKED.sub(r"\\\g<0>", " ".join(printable.split())))


def unescape(text: str) -> str:
    """Return the original text of `escape`, in one line."""
    return re.sub(r"\\(.)", r"\1", text)

"""Text that explains why a result is out of date."""

from collections.abc import Mapping

MANY = 3  # reasons listed before the rest is counted


def describe_changed_code(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return text that lists the files that differ."""
    files = {file: "changed" for file in now if file in before and now[file] != before[file]}
    files |= {file: "is now used" for file in now if file not in before}
    files |= {file: "is no longer used" for file in before if file not in now}
    told = [f"{file} {what}" for file, what in sorted(files.items())]
    return list_reasons(told) or "its data changed"


def list_reasons(told: list[str]) -> str:
    """Return the first reasons and the number of the others."""
    more = f" and {len(told) - MANY} more" if len(told) > MANY else ""
    return ", ".join(told[:MANY]) + more

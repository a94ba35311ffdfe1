"""Sentence on which attention distinguishes positions."""

from rankfall.report.page.question import Read, TableQuestion


def say_places(read: Read) -> tuple[str, str]:
    table = read("probe")
    if table is None or not table.untrained_rows.notna().any():
        return "", ""
    table = table[table.untrained_rows.notna()]
    every, same = int((table.untrained_rows == table.tokens).sum()), table.untrained_rows == 1
    never = int((same & (table.theory_rows == 1).fillna(False)).sum())
    drawn = int(same.sum()) - never
    return (
        f"Given equal tokens, {every} of {len(table)} combinations of components give every place an output of its own. {never} give "
        "all places the same whatever the weights are: no training can teach these a place."
        + (f" {drawn} more do at random weights." if drawn else ""),
        "",
    )


SENTENCES = (TableQuestion("Which attention can tell places apart?", say_places, place=80),)

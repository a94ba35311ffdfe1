"""The sentence on how many published numbers hold."""

from rankfall.report.labels import many
from rankfall.report.page.question import Read, TableQuestion


def say_published(read: Read) -> tuple[str, str]:
    table = read("reproduction")
    if table is None or not table.holds.notna().any():
        return "", ""
    judged = table[table.holds.notna()]
    holds, others = int(judged.holds.astype(bool).sum()), int(table.holds.isna().sum())
    return (
        f"{holds} of {many(len(judged), 'comparison')} {'does' if holds == 1 else 'do'}, at the sizes and settings of this run; "
        f"{many(others, 'published number')} {'was' if others == 1 else 'were'} not measured here.",
        "",
    )


SENTENCES = (TableQuestion("Do published numbers hold?", say_published, place=140, study="published"),)

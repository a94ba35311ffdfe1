"""The sentence on what the model types of the library keep."""

from rankfall.census.outcomes import MEASURED, NOT_ELIGIBLE
from rankfall.report.page.question import Read, TableQuestion

LOST = 0.1


def say_census(read: Read) -> tuple[str, str]:
    table = read("census")
    if table is None:
        return "", ""
    eligible = table[~table.outcome.isin(NOT_ELIGIBLE)]
    known = eligible[(eligible.outcome == MEASURED) & eligible.kept.notna()]
    if not len(known):
        return "", ""
    lost = int((known.residual_last < LOST).sum())
    return (
        f"Of {len(known)} measured model types of transformers, half keep more than {known.kept.median():.2f} of the residual that "
        f"enters; {lost} end below {LOST:g}.",
        "",
    )


SENTENCES = (TableQuestion("What do known architectures keep at birth?", say_census, study="rank", place=75),)

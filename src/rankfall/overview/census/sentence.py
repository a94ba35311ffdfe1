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
    count = int((eligible.outcome == MEASURED).sum())
    half, lost = int((known.kept < 0.5).sum()), int((known.residual_last < LOST).sum())
    alone = known[known.residual_san.notna()]
    gone = int((alone.residual_san < LOST).sum())
    return (
        f"Of {len(eligible)} eligible model types of transformers {', '.join(sorted(table.transformers.unique()))}, {count} are "
        f"measured as the library initialises them. In the median the layers keep {known.kept.median():.2f} of the residual that enters; "
        f"{half} types keep less than half, and the last residual of {lost} is below {LOST:g}. Of what mixes tokens alone, without skips "
        f"and MLPs, {gone} of {len(alone)} types end below {LOST:g}.",
        "",
    )


SENTENCES = (TableQuestion("What do known architectures keep at birth?", say_census, study="rank", place=75),)

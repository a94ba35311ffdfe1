"""Declare what is shown of the census: a chart and a sentence. The numbers of single types are in the table (`census.parquet`)."""

from rankfall.census.outcomes import MEASURED, NOT_ELIGIBLE
from rankfall.report.page.chart import POSITIVE, Chart
from rankfall.report.page.question import Read, TableQuestion

CHARTS = (
    Chart(
        "census",
        "What kinds of models keep at initialisation",
        "Residual of the last state over that of the first, mean over the model types of the transformers library whose norms stand there "
        "and that have this mask.",
        "mask",
        "norm_place",
        "mask",
        "norms",
        kind="grid",
        line="norm_place",
        choose=("mixer",),
        start={"mixer": "attention"},
        value="kept",
        value_title="kept of the residual",
        within=POSITIVE,
        better="high",
        place=74,
        study="rank",
    ),
)


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

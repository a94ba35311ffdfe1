"""The page's chart of the census. The numbers of single types are in the table (`census.parquet`)."""

from rankfall.report.page.chart import POSITIVE, Chart

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

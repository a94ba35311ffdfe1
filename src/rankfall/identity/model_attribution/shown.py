"""Declare the table `model_attribution` and what is shown of it: share of a token's state that comes from each token of the input, in a
real model.

The figure: attribution by layer in real models, one row of panels per model and phase, with the published medians of own shares.
"""

from dataclasses import replace

from rankfall.annotations import Read
from rankfall.identity.attribution.figure import draw_networks
from rankfall.identity.attribution.shown import ALL_TOKENS, ATTRIBUTION_COLUMNS, ATTRIBUTION_KEY
from rankfall.identity.attribution.shown import CHARTS as OF_CELLS
from rankfall.report.captions import describe_lines
from rankfall.report.model_names import name_measurements, select_models
from rankfall.report.page.chart import MODEL
from rankfall.report.published_numbers import read_published
from rankfall.report.schema import MODEL_COLUMNS, Table, declare_table
from rankfall.report.style import Picture


def columns() -> Table:
    """Declare the table: one row per number, with the columns of attribution."""
    return declare_table(
        "model_attribution",
        "a model x phase x seed x layer x method x kept tokens x quantity",
        MODEL_COLUMNS,
        ATTRIBUTION_COLUMNS,
        """
        outliers int: features of this layer's states whose mean size is above six times the median feature's, four at most
        """,
        key=f"model revision phase definition text length dtype seed {ATTRIBUTION_KEY}",
        cells=False,
    )


CHARTS = (
    replace(
        OF_CELLS[0],
        name="model_own_share",
        title="Own share of a token's state in real models",
        text="The same for real models, one line for each way to attribute: derivatives (jacobian), attention weights, norms of what is "
        "added, or taking the token out (ablation).",
        line="method",
        choose=(*MODEL, "kept_tokens"),
        start={**ALL_TOKENS, "definition": "clean"},
        place=60,
    ),
)


DATA = ["identity/model_attribution/published.csv"]
PUBLISHED = read_published(__file__)


def figure(read: Read, *, models: list[str] = []) -> Picture:
    """Draw the models.

    `models`: which ones, by default all.
    """
    table = select_models(read("model_attribution"), "model_attribution", models)
    seeded = table.seed.notna().any()  # pretrained weights have no seed
    every = table.assign(line=name_measurements(table), seed=table.seed.fillna(-1))
    shown = {str(name): part for name, part in every.groupby("line")}
    lengths = every["length"].unique()
    about = f" Numbers are {describe_lines(every, ['line'], band='')}." if seeded else ""
    return draw_networks(shown, about, int(lengths[0]) if len(lengths) == 1 else None, published=True)

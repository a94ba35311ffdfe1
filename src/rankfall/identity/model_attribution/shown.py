"""Declare what is shown of `model_attribution`: charts and published numbers.

The figure: attribution by layer in real models, one row of panels per model and phase, with the published medians of own shares.
"""

from rankfall.annotations import Read
from rankfall.identity.attribution.figure import draw_networks
from rankfall.identity.attribution.shown import ALL_TOKENS, OWN, equal_shares
from rankfall.report.account import seeds
from rankfall.report.lines import SHARE
from rankfall.report.model_names import name_measurements
from rankfall.report.page.chart import MODEL, Chart, Level
from rankfall.report.published_numbers import read_published
from rankfall.report.style import Picture

CHARTS = (
    Chart(
        "model_own_share",
        "Own share of a token's state in real models",
        "The same for real models, one line for each way to attribute: derivatives (jacobian), attention weights, norms of what is "
        "added, or taking the token out (ablation).",
        "layer",
        "value",
        "layer",
        "own share",
        line="method",
        choose=(*MODEL, "kept_tokens"),
        start={**ALL_TOKENS, "definition": "clean"},
        where=OWN,
        derive={"equal_shares": equal_shares},
        within=SHARE,
        beside=(Level("equal shares", "equal_shares"),),
        place=60,
    ),
)


DATA = ["identity/model_attribution/published.csv"]
PUBLISHED = read_published(__file__)


TABLES = ["model_attribution"]


def figure(read: Read, *, models: list[str] = []) -> Picture:
    """Draw the models.

    `models`: which ones, in order; by default all.
    """
    table = read("model_attribution")
    table = table[table.model.isin(models)] if models else table
    seeded = table.seed.notna().any()  # pretrained weights have no seed
    every = table.assign(line=name_measurements(table), seed=table.seed.fillna(-1))
    order = {name: place for place, name in enumerate(models)}
    names = (
        every.assign(place=every.model.map(order).fillna(0))
        .sort_values(["place", "model", "phase", "line"])
        .line.unique()
    )
    shown = {name: every[every.line == name] for name in names}
    lengths = every["length"].unique()
    about = f" Means over {seeds(every, ['line'])}." if seeded else ""
    return draw_networks(shown, about, int(lengths[0]) if len(lengths) == 1 else None, published=True)

"""Chart of the order of contraction for the page."""

from rankfall.rank.orders.rows import OF_ATTENTION
from rankfall.report.page.chart import COMPONENTS, Chart

CHARTS = (
    Chart(
        "orders",
        "Order of contraction of every kind of attention",
        "By what turns scores into weights (rows) and how places enter the scores (columns), without skip connections and MLPs. 3: "
        "residuals are cubed in every layer, so rank is lost doubly exponentially; 1: they shrink by a factor; 0: they do not vanish.",
        **COMPONENTS,
        choose=("attention", "mask", "sentinels", "heads"),
        start={"attention": "multihead", "mask": "none", "sentinels": "none"},
        where=OF_ATTENTION,
        value="order",
        value_title="order",
        within=(0.0, 3.0),
        better="low",
        place=30,
    ),
)

"""Chart of the positions that attention can distinguish for the page."""

from rankfall.report.page.chart import COMPONENTS, Chart

CHARTS = (
    Chart(
        "probe",
        "Places that attention can tell apart",
        "Equal tokens go in: how many different vectors come out, at random weights. Where it is 1, no training can name a place.",
        **COMPONENTS,
        choose=("attention", "mask", "sentinels", "tokens", "depth"),
        start={"attention": "multihead", "mask": "none", "sentinels": "none"},
        value="untrained_rows",
        value_title="different vectors",
        within=(1.0, None),
        better="high",
        place=10,
    ),
)

"""Chart of products of attention matrices for the page."""

from rankfall.report.page.chart import MODEL, POSITIVE, Chart

CHARTS = (
    Chart(
        "chains",
        "Products of a model's attention matrices",
        "One attention matrix from each of so many layers, multiplied: how far the product is from a matrix of rank 1, which gives all "
        "tokens the same. Mean over random paths.",
        "chain",
        "residual",
        "matrices in the product",
        "residual of rank 1",
        line="phase",
        choose=tuple(name for name in MODEL if name != "phase"),
        scale="log",
        within=POSITIVE,
        place=90,
    ),
)

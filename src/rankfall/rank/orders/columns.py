"""orders.parquet: the rate at which architectures lose rank."""

from rankfall.report.schema import Column, Table


def orders() -> Table:
    """Declare the table: one row per architecture and quantity."""
    return Table(
        "orders",
        "block x attention x normaliser x position x mask x sentinels x heads x biases x quantity",
        (
            Column("block", "text", "what surrounds the attention: nothing (attention alone), norms, skip, MLP"),
            Column("attention", "text", "how tokens are mixed"),
            Column(
                "normaliser", "text", "what turns scores into attention weights; null: nothing reads it", nullable=True
            ),
            Column("position", "text", "how places enter the scores"),
            Column("mask", "text", "which pairs of places may attend; null: nothing reads it", nullable=True),
            Column("sentinels", "text", "extra tokens that carry no input; only the other tokens are measured"),
            Column("heads", "int", "attention heads; null: nothing reads it", nullable=True),
            Column("biases", "bool", "whether the linear maps have biases"),
            Column("quantity", "text", "res: |R|/|X|, Frobenius, R about the token mean; sigma_ratio: sigma_2/sigma_1"),
            Column(
                "order",
                "float",
                "p in out ~ C in^p for nearly identical rows, mean over draws; null where undefined (see reason)",
                nullable=True,
            ),
            Column(
                "uncertainty",
                "float",
                "spread of p over draws and standard error of the fits, added in squares",
                nullable=True,
            ),
            Column("log10_constant", "float", "log10 C, median over draws", nullable=True),
            Column(
                "decades",
                "float",
                "range of the residual that the fit spans",
                unit="decades",
                nullable=True,
            ),
            Column("draws", "int", "random draws of weights, common row and direction"),
            Column("identical_draws", "int", "draws whose output rows are identical to the last digit: not fitted"),
            Column(
                "method",
                "text",
                "centred: centred propagation, scales 1e-8 to 1e-40; float64: ordinary outputs; none: it failed (see reason)",
            ),
            Column("theory", "float", "order expected of res; null for sigma_ratio", nullable=True),
            Column("theory_reason", "text", "why that is expected", nullable=True),
            Column("reason", "text", "why the order is undefined, or what an order of zero means; empty otherwise"),
        ),
        key=("block", "attention", "normaliser", "position", "mask", "sentinels", "heads", "biases", "quantity"),
        cells=False,
    )

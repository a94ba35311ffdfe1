"""influence.parquet: influence of each position on the last token of untrained causal stacks, and closed forms for it."""

from rankfall.report.schema import Column, Table


def influence() -> Table:
    """Declare the table: one row per position, and one without a position for the whole."""
    return Table(
        "influence",
        "a source x network x position x weight x depth x seed x place; and without a place, agreement with uniform averaging",
        (
            Column(
                "source",
                "text",
                "jacobian: norms of blocks d e_n / d x_i of a network; averaging: last row of ((1 - a) 1 + a C)^depth, C_ji = 1/j; "
                "smoothed density: the same from its closed form; density: its limit for many places; in squares: what "
                "independent random "
                "value maps add up to",
            ),
            Column(
                "network",
                "text",
                "attention: (1 - a) X + a SA(X) alone; pre-norm: a pre-norm transformer; none: a formula",
            ),
            Column("position", "text", "the network's position encoding; null: a formula", nullable=True),
            Column(
                "alpha",
                "float",
                "weight a of the attention beside the skip; null: a pre-norm transformer",
                nullable=True,
            ),
            Column("depth", "int", "layers"),
            Column("length", "int", "places", unit="tokens"),
            Column("seed", "int", "draw of weights and inputs; null: a formula", nullable=True),
            Column("quantity", "text", "share: of one place; agreement: of all places with uniform averaging"),
            Column("place", "int", "1 is the first token; null: the row is about all places", nullable=True),
            Column("share", "float", "of the influence on the last token; sums to one over places", nullable=True),
            Column(
                "spearman",
                "float",
                "rank correlation over places with uniform averaging at the same (or fitted) a",
                nullable=True,
            ),
            Column("distance", "float", "half the sum of differences from uniform averaging", nullable=True),
            Column(
                "from_squares",
                "float",
                "the same from `in squares` at the same a; null: a formula or pre-norm",
                nullable=True,
            ),
            Column(
                "fitted",
                "float",
                "the a at which uniform averaging is nearest to a pre-norm transformer",
                nullable=True,
            ),
        ),
        key=("source", "network", "position", "alpha", "depth", "length", "seed", "place"),
        cells=False,
    )

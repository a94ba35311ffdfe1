"""probe.parquet: which attention can distinguish equal tokens, by theory and at random weights."""

from rankfall.report.schema import Column, Table


def probe() -> Table:
    """Declare the table: one row per architecture. Trained networks are in probe_trained."""
    return Table(
        "probe",
        "attention x normaliser x position x mask x sentinels x depth x tokens",
        (
            Column("attention", "text", "how tokens are mixed"),
            Column(
                "normaliser", "text", "what turns scores into attention weights; null: nothing reads it", nullable=True
            ),
            Column("position", "text", "how places enter the network"),
            Column("mask", "text", "which pairs of places may attend; null: nothing reads it", nullable=True),
            Column("sentinels", "text", "extra tokens that carry no input; only the other tokens are counted"),
            Column("depth", "int", "number of blocks"),
            Column("tokens", "int", "n: how often the one symbol is put in"),
            Column(
                "theory_rows",
                "int",
                "distinct rows at most, whatever the weights are; null where theory is undecided",
                nullable=True,
            ),
            Column("argument", "text", "what decides: a word of position/theory.py, explained in docs/position.md"),
            Column("argument_reason", "text", "the argument in a sentence; or what keeps theory from deciding"),
            Column(
                "untrained_rows",
                "int",
                "distinct rows at random weights, the most of all draws; null: not measured (see reason)",
                nullable=True,
            ),
            Column("untrained_least", "int", "the fewest of all draws", nullable=True),
            Column(
                "draws", "int", "networks at random weights; more where the first show fewer rows than theory allows"
            ),
            Column(
                "widest_equal",
                "float",
                "largest difference of rows that count as equal, relative to the largest entry",
                nullable=True,
            ),
            Column(
                "narrowest_distinct",
                "float",
                "smallest difference of rows that count as distinct, relative; null: there are none",
                nullable=True,
            ),
            Column(
                "agreement",
                "text",
                "agree; fewer rows than theory allows; more rows than theory allows; theory undecided; not measured",
            ),
            Column("reason", "text", "why theory and measurement differ, or one is missing; empty where they agree"),
        ),
        key=("attention", "normaliser", "position", "mask", "sentinels", "depth", "tokens"),
        cells=False,
    )

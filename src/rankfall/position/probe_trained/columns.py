"""probe_trained.parquet: trained networks on the probe, beside theory and random weights."""

from rankfall.report.schema import Column, Table


def probe_trained() -> Table:
    """Declare the table: one row per cell and length."""
    return Table(
        "probe_trained",
        "a cell x length",
        (
            Column("length", "int", "n: how often the one symbol is put in"),
            Column("asked", "int", "places with a learned answer: no more than the longest trained length"),
            Column("beyond", "bool", "whether the sequence is longer than any trained on"),
            Column(
                "theory_rows",
                "int",
                "distinct rows at most, whatever the weights are; null where theory is undecided",
                nullable=True,
            ),
            Column("argument", "text", "what decides: a word of position/theory.py, explained in docs/position.md"),
            Column(
                "untrained_rows", "int", "distinct rows of this architecture at random weights, the most of all draws"
            ),
            Column("trained_rows", "int", "distinct rows of the trained network"),
            Column("accuracy", "float", "share of the places asked that are right", nan=True),
            Column("chance", "float", "accuracy of the best single answer for all places"),
            Column("ceiling", "float", "accuracy of the best answers with the trained network's distinct rows"),
            Column("loss", "float", "cross entropy, mean over the places asked", unit="nats", nan=True),
            Column("passes", "bool", "whether accuracy is enough (0.95 unless the measure says otherwise)"),
            Column("agreement", "text", "agree; training falls short; more than theory allows; theory undecided"),
            Column("agreement_reason", "text", "what failed, or keeps theory from deciding; empty where all agree"),
        ),
        key=("length",),
    )

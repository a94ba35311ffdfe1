"""scorecard.parquet: the headline number of every study, one row an architecture."""

from collections.abc import Iterator

from rankfall.report.headlines import HEADLINES, Headline
from rankfall.report.schema import Column, Table

MADE_OF = {
    "block": "how attention and MLP are put together",
    "attention": "how tokens are mixed",
    "normaliser": "what turns scores into attention weights; null: nothing reads it",
    "position": "how places enter",
    "mask": "which pairs of tokens may attend",
    "residual": "how a sublayer's output is combined with its input",
    "mlp": "the feed-forward sublayer",
    "mlp_residual": "how the MLP's output is combined with its input; null: there is none",
    "norm": "normalisation of states",
    "norm_placement": "where the norm stands",
    "sentinels": "extra tokens that carry no input",
}
OTHERS = ("init",)  # tells variants apart too, but is no column


def scorecard() -> Table:
    """One row an architecture and variant of it."""
    return Table(
        "scorecard",
        "an architecture x variant",
        (
            Column("architecture", "text", "the architecture's name in the config"),
            Column(
                "variant",
                "text",
                "the parts that the grid sets, where several designs have this name: column value; empty for the one with "
                "most parts that "
                "are defaults",
            ),
            *(
                Column(name, "text", means, nullable=name in ("normaliser", "mlp_residual"))
                for name, means in MADE_OF.items()
            ),
            Column("cells", "int", "networks of it in this run, of all tasks, trainings and sizes"),
            Column("done", "int", "of these, those that are neither diverged, failed nor missing"),
            *(column for headline in HEADLINES for column in columns_of(headline)),
        ),
        key=("architecture", "variant"),
        cells=False,
    )


def columns_of(headline: Headline) -> Iterator[Column]:
    """A number, what it varies by, what it was measured on, and why there is none."""
    name, timed = headline.name, headline.provenance
    source = f"{headline.table}: {', '.join(headline.columns)}"
    means = f"{headline.meaning} (from {source})"
    yield Column(name, "float", means, unit=headline.unit, nullable=True, provenance=timed)
    yield Column(
        f"{name}_deviation",
        "float",
        f"of `{name}`: standard deviation over seeds, or the uncertainty of a fit; null: one seed",
        unit=headline.unit,
        nullable=True,
        provenance=timed,
    )
    yield Column(f"{name}_seeds", "int", f"seeds that `{name}` is the mean of; null: it has none", nullable=True)
    yield Column(f"{name}_at", "text", f"the networks that `{name}` was measured on; null: none", nullable=True)
    yield Column(f"{name}_reason", "text", f"why there is no `{name}`; empty where there is")

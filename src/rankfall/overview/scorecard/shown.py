"""Declare the table `scorecard`: the headline number of every study, one row per architecture and setting."""

from collections.abc import Iterator

from rankfall.design import UNREAD
from rankfall.report.headlines import Headline, headlines
from rankfall.report.schema import Column, Table, declare_table
from rankfall.report.variants import MADE_OF

FINDS = ["headline"]


def columns() -> Table:
    unread = {field for fields in UNREAD.values() for field in fields}
    return declare_table(
        "scorecard",
        "an architecture x variant x setting",
        """
        architecture text: the architecture's name in the config
        variant text: the parts that the grid sets, where several designs have this name: column value; empty for the one with most
            parts that are defaults
        setting text: what its networks have in common: task, training, depth, and what else settings differ in that agree in these
            (sizes, options of the task, of the training). Only rows of one setting are compared
        task text: the task's name in the config
        training text: the training's name in the config
        trained bool: whether that is a training; otherwise the networks are as they were drawn
        depth int: number of blocks
        width int: dimension of a token's vector
        heads int?: attention heads of a block; where nothing reads them, those of the other networks of this setting, or null
        dtype text: number format of training
        """,
        (Column(name, "text", means, nullable=name in unread) for name, means in MADE_OF.items()),
        """
        cells int: networks of it at this setting, one a seed
        done int: of these, those that are neither diverged, failed nor missing
        processors text? provenance: where several kinds of processors trained its networks: which; null: one kind, or not recorded
        """,
        (column for headline in headlines() for column in columns_of(headline)),
        key="architecture variant setting",
        cells=False,
    )


def columns_of(headline: Headline) -> Iterator[Column]:
    """Yield the columns of a headline: the number, its variation, its networks, comparisons, and the reason if it is missing."""
    name, unit, timed = headline.name, headline.unit, headline.provenance
    source = f"{headline.table}: {', '.join(headline.columns)}"
    repeated = "; the same in every row with these components" if headline.components else ""
    yield Column(name, "float", f"{headline.meaning} (from {source}){repeated}", unit, nullable=True, provenance=timed)
    of = "uncertainty of the fit" if headline.components else f"standard deviation over {headline.counted}s; null: one"
    yield Column(f"{name}_deviation", "float", f"of `{name}`: {of}", unit, nullable=True, provenance=timed)
    if headline.components:
        yield Column(f"{name}_at", "text", f"what `{name}` was measured on; null: it was not", nullable=True)
    else:
        asked = f"seeds that `{name}` was asked of; null: it was not measured here"
        mean_of = f"{headline.counted}s that `{name}` is the {'mean' if headline.counted == 'seed' else 'median'} of; null: there is none"
        lost = f"how many of these seeds diverged, failed or are missing, and why; empty where none; `{name}` is then of the others"
        yield Column(f"{name}_seeds", "int", mean_of, nullable=True, provenance=timed)
        yield Column(f"{name}_of", "int", asked, nullable=True)
        yield Column(f"{name}_lost", "text", lost)
        yield Column(
            f"{name}_each",
            "text",
            f"`{name}` of each {headline.counted}, by which rows are compared: `0=0.5 1=0.25`",
            nullable=True,
            provenance=timed,
        )
    if headline.has_chances:
        means = f"chance of each seed, for `{name}_each`: the test sets of seeds differ"
        yield Column(f"{name}_chance_each", "text", means, nullable=True)
    for kind, means in headline.beside.items():
        yield Column(f"{name}_{kind}", "float", f"beside `{name}`: {means}", nullable=True)
    yield Column(f"{name}_reason", "text", f"why there is no `{name}`; empty where there is", provenance=timed)

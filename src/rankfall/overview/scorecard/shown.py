"""Declare the table `scorecard`: the headline number of every study, one row per architecture and setting."""

from rankfall.design import UNREAD
from rankfall.report.headlines import Headline, headlines
from rankfall.report.schema import Column, Table, declare_columns, declare_table
from rankfall.report.settings import MADE_OF

FINDS = ["headline"]


def columns() -> Table:
    """Declare the table of headline numbers."""
    unread = {field for fields in UNREAD.values() for field in fields}
    return declare_table(
        "scorecard",
        "each architecture, variant and setting",
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


def columns_of(headline: Headline) -> tuple[Column, ...]:
    """Return the columns of a headline: the number, its variation, its networks, comparisons, and the reason if it is missing."""
    name, counted, timed = headline.name, headline.counted, " provenance" * headline.provenance
    unit = f" [{headline.unit}]" * bool(headline.unit)
    number = f"{' '.join(headline.meaning.split())} (from {headline.table}: {', '.join(headline.columns)})"
    if headline.components:
        number += "; the same in every row with these components"
        deviation = "uncertainty of the fit"
        networks = [f"{name}_at text?: what `{name}` was measured on; null: it was not"]
    else:
        deviation = f"standard deviation over {counted}s; null: one"
        mean = "mean" if counted == "seed" else "median"
        networks = [
            f"{name}_seeds int?{timed}: {counted}s that `{name}` is the {mean} of; null: there is none",
            f"{name}_of int?: seeds that `{name}` was asked of; null: it was not measured here",
            f"{name}_lost text: how many of these seeds diverged, failed or are missing, and why; empty where none; "
            f"`{name}` is then of the others",
            f"{name}_each text?{timed}: `{name}` of each {counted}, by which rows are compared: `0=0.5 1=0.25`",
        ]
    chances = f"{name}_chance_each text?: chance of each seed, for `{name}_each`: the test sets of seeds differ"
    lines = [
        f"{name} float?{unit}{timed}: {number}",
        f"{name}_deviation float?{unit}{timed}: of `{name}`: {deviation}",
        *networks,
        *[chances] * headline.has_chances,
        *(f"{name}_{kind} float?: beside `{name}`: {means}" for kind, means in headline.beside.items()),
        f"{name}_reason text{timed}: why there is no `{name}`; empty where there is",
    ]
    return declare_columns("\n".join(lines))

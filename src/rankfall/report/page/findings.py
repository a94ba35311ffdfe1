"""What a run found, in plain sentences computed from its tables. A sentence is there where its table is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rankfall.report.selection import clear
from rankfall.report.style import power
from rankfall.report.variants import placed

if TYPE_CHECKING:
    from pandas import DataFrame, Series

Read = Callable[[str], Any]  # a table, or None where the run has none
NEAR = 0.1  # of an order of contraction to 0, 1 or 3
KEEPS = 0.5  # residual at the last layer
NAMED = 6


@dataclass(frozen=True)
class Finding:
    """A question, its answer, and the section with the numbers."""

    question: str
    answer: str
    study: str


def findings(read: Read) -> list[Finding]:
    """All that the tables have an answer to, most important first."""
    return [found for ask in ASKED for found in ask(read)]


def was_run(cells: DataFrame) -> str:
    """How many networks of what, and how they ended."""
    done = (cells.status == "done").sum()
    ends = [f"{count} {status}" for status, count in cells.status.value_counts().items() if status != "done"]
    minutes = cells.seconds.fillna(0).sum() / 60
    seeds = cells.groupby(["task", "architecture", "training"]).seed.nunique().max()
    hosts = ", ".join(sorted(cells.device.dropna().unique()))
    trained = int((cells.epochs > 0).sum())
    ended = "All are done" if done == len(cells) else f"{done} {is_are(done)} done, {', '.join(ends)}"
    left = " and the others left at their random initial weights (training init)" if trained < len(cells) else ""
    how = f"{trained} of them" if left else "all"
    return (
        f"{many(len(cells), 'small network')} of {many(cells.architecture.nunique(), 'architecture')} on "
        f"{many(cells.task.nunique(), 'task')}, up to {many(int(seeds), 'random seed')} each, {how} trained{left}. "
        f"{ended}; training took {minutes:.1f} minutes of computing ({hosts})."
    )


def collapse(read: Read) -> Iterator[Finding]:
    scores = read("scorecard")
    if scores is None:
        return
    falls = scores[scores.halving_depth.notna()].sort_values("halving_depth")
    if len(falls):
        first = falls.iloc[0]
        answer = (
            f"{name(first)}{without(first)} loses half of what tells its tokens apart{within(first.halving_depth)} after "
            f"{first.halving_depth:.2f} layers, interpolated ({first.halving_depth_at}). "
        )
        others = [f"{name(row)} {row.halving_depth:.2f}" for _, row in falls.iloc[1:NAMED].iterrows()]
        answer += f"Next: {', '.join(others)}. " if others else ""
        yield Finding("Which architecture collapses fastest?", answer + skips(scores), "rank")
    below = scores[scores.depth_below_tenth.notna()].sort_values("depth_below_tenth")
    asked = scores[scores.depth_below_tenth_at.notna()]
    if len(asked):
        at: dict[str, list[str]] = {}
        for _, row in below.iterrows():
            at.setdefault(f"{row.depth_below_tenth:.1f}".removesuffix(".0"), []).append(name(row))
        each = [f"layer {layer}: {', '.join(names)}" for layer, names in at.items()]
        stay = len(asked) - len(below)
        answer = f"Mean over seeds, {'; '.join(each)}. " if each else ""
        if stay:
            rows = f"{'other ' if each else ''}{many(stay, 'row')}"
            answer += f"In the {rows} of the scorecard at least one seed has no such layer; the scorecard says why."
        yield Finding("At which layer does the residual fall below 0.1?", answer.strip(), "rank")


def without(row: Series) -> str:
    """What a network lacks, for those who do not know its name."""
    lacks = {"residual": "skip connections", "norm": "norms", "mlp": "MLPs"}
    missing = [what for part, what in lacks.items() if getattr(row, part) == "none"]
    return f" (no {', no '.join(missing)})" if missing else ""


def within(depth: float) -> str:
    return " within the first layer," if depth < 1 else ""


def skips(scores: DataFrame) -> str:
    """How many keep their tokens apart, with skip connections and without."""
    known = scores[scores.residual_last.notna()]
    parts = []
    for what, part in (
        ("with skip connections", known[known.residual.notna() & (known.residual != "none")]),
        ("without", known[known.residual == "none"]),
    ):
        if len(part):
            parts.append(f"{int((part.residual_last >= KEEPS).sum())} of {len(part)} {what}")
    return f"A residual of at least {KEEPS} is left at the last layer of {' and of '.join(parts)}." if parts else ""


def orders(read: Read) -> Iterator[Finding]:
    table = read("orders")
    if table is None:
        return
    kinds = ["attention", "normaliser", "position", "mask", "sentinels"]
    table = table[(table.block == "attention alone") & (table.quantity == "res") & table.biases.astype(bool)]
    each = table.groupby(kinds, dropna=False).order.max()
    if not each.notna().any():
        return
    cubed, shrunk, kept = (int(((each - order).abs() < NEAR).sum()) for order in (3, 1, 0))
    unfit = int(each.isna().sum())
    undefined = f" {unfit} {'has' if unfit == 1 else 'have'} no order; the table says why." if unfit else ""
    cube, shrink, do = (f"{count} {verb if count != 1 else verbs}" for count, verb, verbs in (
        (cubed, "cube", "cubes"), (shrunk, "shrink", "shrinks"), (kept, "do", "does")))  # fmt: skip
    yield Finding(
        "Which attention loses rank, and how fast?",
        f"Of {many(len(each), 'kind')} of attention layer, {cube} the residual in every layer (doubly exponential collapse), {shrink} "
        f"it by a factor (exponential), and {do} not let it vanish.{undefined}",
        "rank",
    )


def law(read: Read) -> Iterator[Finding]:
    table = read("law")
    if table is None:
        return
    table = table[table.status == "done"]
    table = table[clear(table)]  # rounding noise is no residual
    if not len(table):
        return
    deepest = int(table.layer.max())
    last = placed(table[table.layer == deepest].reset_index(drop=True))
    by = ["architecture", "variant", "setting"]  # a trained network and an untrained one are two answers
    ends = last.groupby(by).agg(
        residual=("log10_residual", "mean"), centred=("method", lambda of: (of == "centred").all())
    )
    ends = ends.reset_index()
    low, high = ends.loc[ends.residual.idxmin()], ends.loc[ends.residual.idxmax()]
    several = ends.setting.nunique() > 1
    said = [f"{name(row)}{f' ({row.setting})' if several else ''}" for row in (low, high)]
    left = f"{10**high.residual:.2f}" if high.residual > -1.5 else power(high.residual)
    exact = ", computed without rounding" if low.centred else ", in float64"
    yield Finding(
        "How small does the residual become?",
        f"After {deepest} layers {said[0]} is at {power(low.residual)}{exact}; {said[1]} is at {left}.",
        "rank",
    )


def probe(read: Read) -> Iterator[Finding]:
    table = read("probe")
    if table is None:
        return
    table = table[table.untrained_rows.notna()]
    if len(table):
        every, one = int((table.untrained_rows == table.tokens).sum()), int((table.untrained_rows == 1).sum())
        yield Finding(
            "Which attention can tell places apart?",
            f"Given equal tokens, {every} of {len(table)} combinations of components give every place an output of its own, and {one} give "
            "all places the same: no training can teach these a place.",
            "position",
        )


def published(read: Read) -> Iterator[Finding]:
    table = read("reproduction")
    if table is None:
        return
    judged = table[table.holds.notna()]
    if len(judged):
        holds = int(judged.holds.astype(bool).sum())
        yield Finding(
            "Do published numbers hold?",
            f"{holds} of {many(len(judged), 'comparison')} {'does' if holds == 1 else 'do'}, at the sizes and settings of this run; "
            f"{many(len(table) - len(judged), 'published number')} {'was' if len(table) - len(judged) == 1 else 'were'} not measured here.",
            "published",
        )


def range_of(column: str, read: Read) -> Iterator[Finding]:
    """The highest and the lowest of a column of the scorecard, among architectures measured at the setting that most were."""
    scores = read("scorecard")
    if scores is None:
        return
    known = scores[scores[column].notna()]
    if not len(known):
        return
    at = known[f"{column}_at"]
    known = known[at == at.value_counts().sort_index(kind="stable").idxmax()]
    if len(known) < 2:
        return
    high, low = known.loc[known[column].idxmax()], known.loc[known[column].idxmin()]
    study, question, text, written = RANGES[column]
    answer = text.format(most=written(high[column]), highest=name(high), least=written(low[column]), lowest=name(low))
    yield Finding(question, f"{answer} ({known[f'{column}_at'].iloc[0]})", study)


def is_are(count: int) -> str:
    return "is" if count == 1 else "are"


def many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def percent(value: float) -> str:
    return f"{value:.0%}"


def name(row: Series) -> str:
    return f"{row.architecture} ({row.variant})" if row.variant else str(row.architecture)


RANGES: dict[
    str, tuple[str, str, str, Callable[[float], str]]
] = {  # of a column: study, question, answer, how a number is written
    "short_paths": (
        "rank",
        "Do short paths do the work?",
        "Paths through at most a third of the layers make {least} of the way from chance to the network's own accuracy in {lowest}, and "
        "{most} in {highest}.",
        percent,
    ),
    "kept": (
        "position",
        "What happens on longer text?",
        "At about 4 times the trained length {highest} keeps {most} of its accuracy, {lowest} {least}.",
        percent,
    ),
    "identity_rate": (
        "identity",
        "Can a token still be found in the last layer?",
        "A linear map finds {most} of the tokens in {highest}, and {least} in {lowest}.",
        percent,
    ),
    "own_share": (
        "identity",
        "How much of a vector is its own token?",
        "At the last layer {most} in {highest}, and {least} in {lowest}.",
        percent,
    ),
    "over_chance": (
        "use",
        "What did they learn?",
        "Test accuracy less that of the best guess is {most} in {highest} and {least} in {lowest}.",
        "{:.2f}".format,
    ),
    "step_ms": (
        "use",
        "What does it cost?",
        "A training step of one network takes from {least} ({lowest}) to {most} ({highest}); sizes differ, the scorecard says which.",
        "{:.1f} ms".format,
    ),
}
ASKED: tuple[Callable[[Read], Iterator[Finding]], ...] = (
    collapse,
    partial(range_of, "step_ms"),
    orders,
    law,
    partial(range_of, "short_paths"),
    probe,
    partial(range_of, "kept"),
    partial(range_of, "identity_rate"),
    partial(range_of, "own_share"),
    partial(range_of, "over_chance"),
    published,
)  # who collapses and what it costs come first

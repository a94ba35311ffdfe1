"""What a run found, in plain sentences computed from its tables. A sentence is there where its table is.

Whatever is said of networks is said of one setting, named in the sentence: the one asked for, or the one at which most architectures have
the number (`report/settings.py` says which among equals).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rankfall.report.headlines import Headline, by_name
from rankfall.report.labels import join, many
from rankfall.report.page.by_depth import say_depth
from rankfall.report.page.collapse import say_fastest, say_orders, say_tenth
from rankfall.report.page.sentences import (
    at,
    compare_with_chance,
    count_seeds,
    is_are,
    listed,
    name,
    percent,
    say_lost,
    write_number,
    write_tie,
)
from rankfall.report.processors import describe_mixture
from rankfall.report.ranking import find_extreme, split_comparable
from rankfall.report.settings import Setting, rows_at, settings_in
from rankfall.report.style import power

if TYPE_CHECKING:
    from pandas import DataFrame

Read = Callable[[str], Any]  # a table, or None where the run has none
Say = Callable[["DataFrame", Setting, int], str]  # of the rows of a setting; of how many it was chosen
NEAR = 0.1  # of an order of contraction to 0, 1 or 3


@dataclass(frozen=True)
class Finding:
    """A question, its answer, and the section with the numbers; `setting`: of the networks that it is about."""

    question: str
    answer: str
    study: str
    setting: str = ""


@dataclass(frozen=True)
class Question:
    """What is asked of the networks of a setting: `say` is given the rows of the scorecard of which one of the numbers was asked.
    `whole`: it says itself which rows have no number; `brief`: which have lost seeds is said by the finding after it."""

    question: str
    study: str
    numbers: tuple[str, ...]
    say: Say
    whole: bool = False
    brief: bool = False


def findings(read: Read, setting: Setting | None = None) -> list[Finding]:
    """All that the tables have an answer to, most important first. `setting`: of all that is said of networks."""
    return [
        found for ask in ASKED for found in (answer(ask, read, setting) if isinstance(ask, Question) else ask(read))
    ]


def answer(asked: Question, read: Read, setting: Setting | None) -> Iterator[Finding]:
    scores = read("scorecard")
    if scores is None:
        return
    headlines = [by_name(number) for number in asked.numbers]
    measured = scores[[f"{headline.name}_of" for headline in headlines]].notna().any(axis=1)
    known = scores[measured]
    if not len(known):
        return
    counts = known[known[list(asked.numbers)].notna().any(axis=1)].setting.value_counts()
    chosen = setting or max(settings_in(known, headlines), key=lambda one: counts.get(one.label, 0))
    rows = rows_at(known, chosen)
    said = asked.say(rows, chosen, 1 if setting else max(1, len(counts))) if len(rows) else ""
    if said:
        said += "" if asked.brief else say_lost(rows, headlines, reasons=not asked.whole)
        yield Finding(asked.question, said, asked.study, chosen.label)


def was_run(cells: DataFrame) -> str:
    """How many networks of what, and how they ended."""
    done = (cells.status == "done").sum()
    ends = [f"{count} {status}" for status, count in cells.status.value_counts().items() if status != "done"]
    minutes = cells.seconds.fillna(0).sum() / 60
    seeds = cells.groupby(["task", "architecture", "training"]).seed.nunique().max()
    hosts = ", ".join(sorted(cells.device.dropna().unique()))
    trained = int((cells.epochs > 0).sum())
    ended = "All are done" if done == len(cells) else f"{done} {is_are(done)} done, {', '.join(ends)}"
    untrained = join(sorted(cells.training[cells.epochs == 0].unique())) if trained < len(cells) else ""
    left = f" and the others left at their random initial weights (training {untrained})" if untrained else ""
    how = f"{trained} of them" if left else "all"
    kinds = describe_mixture(cells)
    mixed = f" They are {kinds}, whose last digits differ; means over seeds may mix them." if kinds else ""
    return (
        f"{many(len(cells), 'small network')} of {many(cells.architecture.nunique(), 'architecture')} on "
        f"{many(cells.task.nunique(), 'task')}, up to {many(int(seeds), 'random seed')} each, {how} trained{left}. "
        f"{ended}; training took {minutes:.1f} minutes of computing ({hosts}).{mixed}"
    )


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
    beyond = int(((each >= 3 + NEAR) | (each <= -NEAR)).sum())
    between = len(each) - cubed - shrunk - kept - unfit - beyond
    undefined = "".join(
        f" {count} {'has' if count == 1 else 'have'} an order {where} these."
        for count, where in ((between, "between"), (beyond, "beyond"))
        if count
    )
    undefined += f" {unfit} {'has' if unfit == 1 else 'have'} no order; the table says why." if unfit else ""
    cube, shrink, do = (f"{count} {verb if count != 1 else verbs}" for count, verb, verbs in (
        (cubed, "cube", "cubes"), (shrunk, "shrink", "shrinks"), (kept, "do", "does")))  # fmt: skip
    yield Finding(
        "Which attention loses rank, and how fast?",
        f"Of {many(len(each), 'kind')} of attention layer, {cube} the residual in every layer (doubly exponential collapse), {shrink} "
        f"it by a factor (exponential), and {do} not let it vanish.{undefined}",
        "rank",
    )


def say_range(
    rows: DataFrame,
    setting: Setting,
    settings: int,
    *,
    headline: Headline,
    text: str,
    write: Callable[[float], str],
    chance: str = "",
) -> str:
    """The highest and the lowest of a number, with those that tie; of one architecture its number."""
    if not split_comparable(rows, headline, setting):
        return ""
    (known,) = split_comparable(rows, headline, setting)
    high = find_extreme(known, headline, setting, most=True, written=write)
    low = find_extreme(known, headline, setting, most=False, written=write)
    said = write_tie(high, headline, write)
    if len(high) < len(known):
        overlap = ", which overlap within their deviations" if set(low.index) & set(high.index) else ""
        said = f"{said}, least in {write_tie(low, headline, write)}{overlap}"
    elif len(known) > 1:
        said = f"{said}, all that have this number"
    else:
        text = f"{headline.title} is known of one architecture alone,"
    said = f"{at(setting, settings)}{text} {said}{count_seeds(known, headline)}."
    return said + (compare_with_chance(known, headline, write, chance) if chance else "")


def say_law(rows: DataFrame, setting: Setting, settings: int) -> str:
    return say_range(
        rows,
        setting,
        settings,
        headline=by_name("log_residual"),
        write=power,
        text=f"after {many(setting.depth, 'layer')} the residual is largest in",
    )


def say_cost(rows: DataFrame, setting: Setting, settings: int) -> str:
    """Of the largest part of rows whose times may be compared."""
    headline = by_name("step_ms")
    parts = split_comparable(rows, headline, setting)
    if not parts:
        return ""
    part = parts[0]
    low = find_extreme(part, headline, setting, most=False)
    high = find_extreme(part, headline, setting, most=True)
    write = "{:.1f} ms".format
    said = f"is fastest in {write_tie(low, headline, write)}"
    if len(low) < len(part):
        overlap = ", which overlap within their deviations" if set(low.index) & set(high.index) else ""
        said += f" and slowest in {write_tie(high, headline, write)}{overlap}"
    elif len(part) == 1:
        said = f"takes {write_number(part.iloc[0], headline, write)} in {name(part.iloc[0])}"
    others = [name(row) for other in parts[1:] for _, row in other.iterrows()]
    left = f" Times of {listed(others)} were taken otherwise and are not compared with these." if others else ""
    said = f"a training step of one network {said}, {part.step_ms_by.iloc[0]}{count_seeds(part, headline)}."
    return f"{at(setting, settings)}{said}{left}"


def depths(read: Read) -> Iterator[Finding]:
    scores = read("scorecard")
    if scores is not None and len(scores):
        settings, said = say_depth(scores, settings_in(scores))
        if said:
            yield Finding("What does depth do to accuracy?", said, "use", settings)


def probe(read: Read) -> Iterator[Finding]:
    table = read("probe")
    if table is None:
        return
    table = table[table.untrained_rows.notna()]
    if len(table):
        every, same = int((table.untrained_rows == table.tokens).sum()), table.untrained_rows == 1
        never = int((same & (table.theory_rows == 1).fillna(False)).sum())
        drawn = int(same.sum()) - never
        yield Finding(
            "Which attention can tell places apart?",
            f"Given equal tokens, {every} of {len(table)} combinations of components give every place an output of its own. {never} give "
            "all places the same whatever the weights are: no training can teach these a place."
            + (f" {drawn} more do at random weights." if drawn else ""),
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


def of_range(question: str, number: str, text: str, write: Callable[[float], str], chance: str = "") -> Question:
    headline = by_name(number)
    say = partial(say_range, headline=headline, text=text, write=write, chance=chance)
    return Question(question, headline.study, (number,), say)


ASKED: Sequence[Question | Callable[[Read], Iterator[Finding]]] = (
    Question(
        "Which architecture collapses fastest?", "rank", ("residual_last", "log_residual"), say_fastest, brief=True
    ),
    Question("Which order has each block?", "rank", ("residual_last", "log_residual"), say_orders),
    Question("At which layer does the residual fall below 0.1?", "rank", ("depth_below_tenth",), say_tenth, whole=True),
    Question("What does it cost?", "use", ("step_ms",), say_cost),
    orders,
    Question("How small does the residual become?", "rank", ("log_residual",), say_law),
    of_range(
        "Do short paths do the work?",
        "short_paths",
        "of the way from chance to the network's own accuracy, paths through at most a third of the layers make most in",
        percent,
    ),
    probe,
    of_range(
        "What happens on longer text?",
        "kept",
        "at about 4 times the trained length most accuracy is kept by",
        percent,
        "Always naming the most frequent word keeps {}",
    ),
    of_range(
        "Can a token still be found in the last layer?",
        "identity_rate",
        "a linear map finds most tokens in",
        percent,
        "A guess among the tokens of the sentence finds {}",
    ),
    of_range(
        "How much of a vector is its own token?",
        "own_share",
        "at the last layer the own share is largest in",
        percent,
        "Equal shares of all tokens are {}",
    ),
    of_range(
        "What did they learn?",
        "accuracy",
        "test accuracy is highest in",
        percent,
        "The best guess that never sees an input has {}",
    ),
    depths,
    published,
)  # who collapses and what it costs come first

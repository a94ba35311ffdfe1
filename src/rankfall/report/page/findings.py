"""The findings of a run in plain sentences computed from its tables. A sentence exists if its table does.

A sentence about networks is about one setting, which it names: the requested one, or the one in which most architectures have the number
(`report/settings.py` decides between equal ones).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rankfall.annotations import DataFrame
from rankfall.report.headlines import by_name
from rankfall.report.labels import join, many
from rankfall.report.page.question import Question, Read
from rankfall.report.page.sentences import is_are, say_lost
from rankfall.report.processors import describe_mixture
from rankfall.report.quantities import declarations_of
from rankfall.report.settings import Setting, rows_at, settings_in
from rankfall.report.variants import DESIGN


@dataclass(frozen=True)
class Finding:
    """A question, its answer, the section with the numbers, and the setting of its networks."""

    question: str
    answer: str
    study: str
    setting: str = ""


def findings(read: Read, setting: Setting | None = None) -> list[Finding]:
    """Return the answers to all questions that the tables can answer, most important first. `setting`: the setting of all networks."""
    found: list[Finding] = []
    for asked in declarations_of("sentence"):
        if isinstance(asked, Question):
            found += answer(asked, read, setting)
        elif (said := asked.say(read))[0]:
            found.append(Finding(asked.name, said[0], asked.study, said[1]))
    return found


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
        yield Finding(asked.name, said, asked.study, chosen.label)


def was_run(cells: DataFrame) -> str:
    """Return sentences on the numbers of networks, architectures, tasks and seeds, and on how training ended."""
    if not len(cells):
        return "No cells: what was measured needs no network of the grid."
    done = (cells.status == "done").sum()
    ends = [f"{count} {status}" for status, count in cells.status.value_counts().items() if status != "done"]
    minutes = cells.seconds[cells.epochs > 0].fillna(0).sum() / 60
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
        f"{many(len(cells), 'small network')} of {count_architectures(cells)} on "
        f"{many(cells.task.nunique(), 'task')}, up to {many(int(seeds), 'random seed')} each, {how} trained{left}. "
        f"{ended}; training took {minutes:.1f} minutes of computing ({hosts}).{mixed}"
    )


def count_architectures(cells: DataFrame) -> str:
    """Write the number of architectures by name, and of their variants if the grid sets parts of them."""
    names = cells.architecture.nunique()
    variants = len(cells[["architecture", *cells.columns.intersection(DESIGN)]].drop_duplicates())
    return many(names, "architecture") + f" in {variants} variants" * (variants > names)

"""The findings of a run in plain sentences computed from its tables. A sentence exists if its table does.

A sentence about networks is about one setting, which it names: the requested one, or the one in which most architectures have the number
(`report/settings.py` decides between equal ones).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rankfall.annotations import DataFrame
from rankfall.report.headlines import by_name
from rankfall.report.labels import many, span_counts
from rankfall.report.page.question import Question, Read
from rankfall.report.processors import describe_mixture
from rankfall.report.quantities import declarations_of
from rankfall.report.settings import DESIGN, rows_at, settings_in

ASKED = ("rank", "position", "identity")  # the three questions
SHOWN = 5  # findings that the page shows at first


@dataclass(frozen=True)
class Finding:
    """A question, its answer, the section with the numbers, and the setting and number of seeds of its networks."""

    question: str
    answer: str
    study: str
    setting: str = ""
    seeds: str = ""


def findings(read: Read) -> list[Finding]:
    """Return the answers to all questions that the tables can answer, most important first."""
    answers: list[Finding] = []
    for question in declarations_of("sentence"):
        if isinstance(question, Question):
            answers += answer(question, read)
        elif (sentence := question.say(read))[0]:
            answers.append(Finding(question.name, sentence[0], question.study, sentence[1]))
    return answers


def answer(question: Question, read: Read) -> Iterator[Finding]:
    """Yield the answer to a question about the networks of a setting, if there is one."""
    scores = read("scorecard")
    if scores is None:
        return
    headlines = [by_name(number) for number in question.numbers]
    measured = scores[[f"{headline.name}_of" for headline in headlines]].notna().any(axis=1)
    answered = scores[measured]
    if not len(answered):
        return
    counts = answered[answered[list(question.numbers)].notna().any(axis=1)].setting.value_counts()
    chosen = max(settings_in(answered, headlines), key=lambda candidate: counts.get(candidate.label, 0))
    rows = rows_at(answered, chosen)
    if sentence := question.say(rows, chosen):
        seeds = [count for headline in headlines for count in rows[f"{headline.name}_seeds"].dropna()]
        yield Finding(question.name, sentence, question.study, chosen.label, span_counts(seeds, headlines[0].counted))


def choose_findings(answers: Sequence[Finding]) -> list[Finding]:
    """Return the first findings of the page: one for each of the three questions, preferably one of a setting, which has means over seeds;
    then others that do not repeat them."""
    chosen: list[Finding] = []
    for study in ASKED:
        chosen += sorted(
            (finding for finding in answers if finding.study == study), key=lambda finding: not finding.setting
        )[:1]
    for finding in answers:
        if finding not in chosen and not any(repeats(finding, other) for other in chosen):
            chosen.append(finding)
    return chosen[:SHOWN]


def repeats(first: Finding, second: Finding) -> bool:
    """Return whether two answers about one setting have the same extremes: of one number, asked in two ways."""
    tails = sorted(finding.answer.partition(" largest in ")[2].removesuffix(".") for finding in (first, second))
    return first.setting == second.setting and tails[0] != "" and tails[1].startswith(tails[0])


def was_run(cells: DataFrame) -> str:
    """Return sentences on the numbers of networks, architectures, tasks and seeds, and on how training ended."""
    if not len(cells):
        return "No cells: what was measured needs no network of the grid."
    ended = ", ".join(f"{count} {status}" for status, count in cells.status.value_counts().sort_index().items())
    minutes = cells.seconds[cells.epochs > 0].fillna(0).sum() / 60
    seeds = cells.groupby(["task", "architecture", "training"]).seed.nunique().max()
    hosts = ", ".join(sorted(cells.device.dropna().unique()))
    trainings = ", ".join(
        f"{len(part)} of training {name}" + " (random initial weights)" * (not part.epochs.any())
        for name, part in cells.groupby("training")
    )
    kinds, names = describe_mixture(cells), cells.architecture.nunique()
    variants = len(cells[["architecture", *cells.columns.intersection(DESIGN)]].drop_duplicates())
    mixed = f" They are {kinds}, whose last digits differ; means over seeds may mix them." if kinds else ""
    return (
        f"{many(len(cells), 'small network')} of {many(names, 'architecture')} in {many(variants, 'variant')} on "
        f"{many(cells.task.nunique(), 'task')}, up to {many(int(seeds), 'random seed')} each: {trainings}. "
        f"{ended}; training took {minutes:.1f} minutes by the clock, summed over its jobs ({hosts}).{mixed}"
    )

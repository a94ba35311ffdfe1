"""The glossary of all names on the page: architectures by their parts, components by the first sentence of their file, and words."""

import html
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from rankfall import components
from rankfall.annotations import DataFrame
from rankfall.errors import RankfallError
from rankfall.filters import parts
from rankfall.report.headlines import headlines
from rankfall.report.looks import label
from rankfall.report.page.words import WORDS
from rankfall.report.parts import MADE_OF

LACKS = {
    "residual": "skip connections",
    "mlp": "MLPs",
    "norm": "norms",
    "position": "position encoding",
    "mask": "mask",
    "sentinels": "special tokens",
}


@dataclass(frozen=True)
class Term:
    """A name, what kind of name it is, and what it means."""

    name: str
    kind: str
    meaning: str


def terms(cells: DataFrame) -> list[Term]:
    """Return the terms of a run's networks and of the page's words."""
    found = [
        Term(str(label(name)), "architecture", say_architecture(own)) for name, own in cells.groupby("architecture")
    ]
    found += [
        Term(label(name), "task", say_component("task", own.task_component.iloc[0]))
        for name, own in cells.groupby("task")
    ]
    found += [Term(label(name), "training", say_training(own)) for name, own in cells.groupby("training")]
    for kind in MADE_OF:
        if kind in components.KINDS:
            names = sorted({parts(value)[0] for value in cells[kind].dropna()} - {"none"})
            found += [Term(name, kind.replace("_", " "), say_component(kind, name)) for name in names]
    found += [Term(headline.title, "number", headline.meaning) for headline in headlines()]
    return found + [Term(name, "word", meaning) for name, meaning in WORDS.items()]


def say_architecture(cells: DataFrame) -> str:
    """Write the parts of an architecture, with all values of a part that the grid varies."""
    values = {kind: sorted({str(value) for value in cells[kind].dropna()}) for kind in MADE_OF}
    lacks = [f"no {what}" for kind, what in LACKS.items() if values[kind] == ["none"]]
    has = [
        f"{kind.replace('_', ' ')} {' or '.join(map(short, found))}"
        for kind, found in values.items()
        if found not in ([], ["none"])
    ]
    return ", ".join([*has, *lacks])


def short(value: str) -> str:
    """Write a component with its options except null, false and none."""
    name, options = parts(value)
    said = [f"{key} {option}" for key, option in options.items() if option not in ("null", "false", "none", '"none"')]
    return f"{name} ({', '.join(said)})" if said else name


def say_component(kind: str, value: str) -> str:
    """Return the first sentence of the docstring of a component's file."""
    name = parts(value)[0]
    try:
        described = components.describe(kind, name)
    except (RankfallError, OSError):
        return f"a {kind} that is no longer available"
    if described is None:
        return "what fits the task"
    # A file of ours has one component, which its docstring explains; one of a user's may have several.
    text = next(filter(None, described.docs if ":" in name else reversed(described.docs)), "")
    first = re.split(r"(?<=[^.\d][.?])\s+(?=[A-Z`\n])|\n\n", text, maxsplit=1)[0]
    return " ".join(first.split()) or f"{name}: its file has no description"


def say_training(cells: DataFrame) -> str:
    """Write how networks with this training were trained."""
    one = cells.iloc[0]
    if not one.epochs:
        return "not trained: random initial weights"
    optimizer, schedule = parts(one.optimizer)[0], parts(one.schedule)[0]
    dropout = f", dropout {one.dropout:g}" if one.dropout else ""
    return f"{optimizer}, learning rate {one.lr:g} ({schedule}), {one.epochs} epochs, batches of {one.batch}{dropout}, {one['dtype']}"


def write_glossary(found: Iterable[Term]) -> str:
    """Return the terms as HTML lists of definitions, with anchors for links."""
    kinds: dict[str, list[Term]] = {}
    for term in found:
        kinds.setdefault(term.kind, []).append(term)
    return "".join(write_kind(kind, own) for kind, own in kinds.items())


def write_kind(kind: str, own: list[Term]) -> str:
    rows = "".join(
        f'<div id="{anchor(term.name, kind)}"><dt>{html.escape(term.name)}</dt><dd>{html.escape(term.meaning)}</dd></div>'
        for term in own
    )
    return f'<h3>{html.escape(HEADS.get(kind, kind.capitalize() + "s"))}</h3><dl class="terms">{rows}</dl>'


HEADS = {
    "architecture": "Architectures of this run",
    "number": "Headline numbers",
    "sentinels": "Special tokens",
    "mlp": "MLPs",
    "mlp residual": "Skip connections of MLPs",
    "residual": "Skip connections",
}


def anchor(name: str, kind: str) -> str:
    return f"term-{kind}-{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-').lower()}".replace(" ", "-")


def linker(architectures: Iterable[str] = ()) -> Callable[[str], str]:
    """Return a function that escapes a text and links the first use of each word to the glossary. Words that are part of a longer name,
    such as an architecture's, are not linked, and neither is a word that is an architecture's name in this run: what SAN, BERT or GPT
    means there is said by its parts."""
    taken = {*PLAIN, *architectures}
    ordered = sorted((word for word in WORDS if word not in taken), key=len, reverse=True)
    wanted = re.compile(rf"(?<![\w+-])({'|'.join(map(re.escape, ordered))})(?![\w+-])")

    def link(text: str) -> str:
        return "".join(link_words(text, wanted))

    return link


def link_words(text: str, wanted: re.Pattern[str]) -> Iterator[str]:
    seen, at = set(), 0
    for match in wanted.finditer(text):
        word = match[1]
        if word in seen:
            continue
        seen.add(word)
        yield html.escape(text[at : match.start()])
        yield f'<a class="term" href="#{anchor(word, "word")}">{html.escape(word)}</a>'
        at = match.end()
    yield html.escape(text[at:])


# Words of the glossary that are not linked, because they are common in plain sentences.
COMMON = "skip, norm, published, seed, setting, tie, causal, path, scorecard, probe, deviation, floor, influence, sentinels, linear map"
PLAIN = set(COMMON.split(", "))

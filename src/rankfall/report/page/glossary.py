"""Every name that the page uses, explained: architectures by their parts, parts by the first sentence of their own file, and words."""

import ast
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
    """Of a run's networks, and of the words of the page."""
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
    """Return what an architecture is made of, whatever it is called: all values of a part where the grid sets it."""
    values = {kind: sorted({str(value) for value in cells[kind].dropna()}) for kind in MADE_OF}
    lacks = [f"no {what}" for kind, what in LACKS.items() if values[kind] == ["none"]]
    has = [
        f"{kind.replace('_', ' ')} {' or '.join(map(short, found))}"
        for kind, found in values.items()
        if found not in ([], ["none"])
    ]
    return ", ".join([*has, *lacks])


def short(value: str) -> str:
    """A component with the options that are not left at a null or a flag."""
    name, options = parts(value)
    said = [f"{key} {option}" for key, option in options.items() if option not in ("null", "false", "none", '"none"')]
    return f"{name} ({', '.join(said)})" if said else name


def say_component(kind: str, value: str) -> str:
    """The first sentence of a component's own file."""
    name = parts(value)[0]
    try:
        described = components.describe(kind, name)
    except (RankfallError, OSError, SyntaxError):
        return f"a {kind} that is not at hand any more"
    if described is None:
        return "what fits the task"
    tree = ast.parse(described.location.file.read_bytes())
    named = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in described.location.attributes
    ]
    told = next((text for node in (tree, *named) if (text := ast.get_docstring(node))), "")
    first = re.split(r"(?<=[^.\d][.?])\s+(?=[A-Z`\n])|\n\n", told, maxsplit=1)[0]
    return " ".join(first.split()) or f"{name}: its file says nothing of it"


def say_training(cells: DataFrame) -> str:
    """How networks with this training were trained."""
    one = cells.iloc[0]
    if not one.epochs:
        return "not trained: random initial weights"
    optimizer, schedule = parts(one.optimizer)[0], parts(one.schedule)[0]
    dropout = f", dropout {one.dropout:g}" if one.dropout else ""
    return f"{optimizer}, learning rate {one.lr:g} ({schedule}), {one.epochs} epochs, batches of {one.batch}{dropout}, {one['dtype']}"


def write_glossary(found: Iterable[Term]) -> str:
    """As a list of definitions, with places that links lead to."""
    kinds: dict[str, list[Term]] = {}
    for term in found:
        kinds.setdefault(term.kind, []).append(term)
    return "".join(write_kind(kind, own) for kind, own in kinds.items())


def write_kind(kind: str, own: list[Term]) -> str:
    rows = "".join(
        f'<div id="{place(term.name, kind)}"><dt>{html.escape(term.name)}</dt><dd>{html.escape(term.meaning)}</dd></div>'
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


def place(name: str, kind: str) -> str:
    return f"term-{kind}-{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-').lower()}".replace(" ", "-")


def linker() -> Callable[[str], str]:
    """Escapes texts and links in each the first use of a word to the glossary. A word of small letters is not linked where it is a part of
    an architecture's name."""
    ordered = sorted((word for word in WORDS if word not in PLAIN), key=len, reverse=True)
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
        yield f'<a class="term" href="#{place(word, "word")}">{html.escape(word)}</a>'
        at = match.end()
    yield html.escape(text[at:])


# Words that are as common in plain sentences: they are in the glossary, and not linked.
COMMON = "skip, norm, published, seed, setting, tie, causal, path, scorecard, probe, deviation, floor, influence, sentinels, linear map"
PLAIN = set(COMMON.split(", "))

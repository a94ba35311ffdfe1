"""The glossary of all names on the page: architectures by their parts, components by the first sentence of their file, and words."""

import html
import re
from collections.abc import Callable, Iterable

from rankfall import components
from rankfall.annotations import DataFrame, Series
from rankfall.filters import parts
from rankfall.report.headlines import headlines
from rankfall.report.looks import label
from rankfall.report.settings import MADE_OF

WORDS = {
    # parts of networks and texts; no names of architectures, whose meaning depends on the configuration
    "SAN": "self-attention network, as Dong et al. 2021 call networks whose blocks are attention",
    "MLP": "multilayer perceptron: the feed-forward sublayer of a transformer, which changes each token by itself",
    "skip": "skip connection (the residual connection of a sublayer): its input is added to its output",
    "norm": "a normalisation of states, such as a layer norm, which brings each token's vector to one size",
    "causal": "with a mask by which a token sees only itself and what came before it",
    "MLM": "masked language model: some words of a text are hidden, and the model predicts them",
    "BOS": "beginning of sequence: a special token put before a text",
    "CLS": "a special token put before a text, as in BERT",
    "SEP": "a special token put after a text, as in BERT",
    "noPE": "no position encoding",
    "APE": "absolute position encoding: a learned vector for each place, added to the input",
    "RPE": "relative position encoding: a learned number for each offset of two places, added to their score",
    "URPE": "universal RPE: attention weights multiplied by learned numbers, one for each offset (Luo et al. 2022)",
    "RTE": "recognising textual entailment: a data set of sentence pairs",
    "GAU": "gated attention unit: one head whose output is gated, feature by feature (Hua et al. 2022)",
    "KNA": "key-normalised attention",
    "BERT": "a pretrained transformer for text (Devlin et al. 2019)",
    "GPT": "generative pretrained transformer",
    "published": "as in the published code; of numbers: from papers",
    # measured quantities, and words for them
    "residual": "what is left of the tokens' vectors without their mean, as a share of their size: about 1 where they"
    " have nothing in common, 0 where all are one vector",
    "rank collapse": "all tokens become the same vector, so that the matrix of states has rank 1",
    "order of contraction": "p in out ~ C in^p for nearly identical tokens: 3 is doubly exponential collapse with depth, 1 "
    "exponential, 0 none",
    "doubly exponential": "the number of zeros after the decimal point grows by a factor with every layer",
    "path": "one way through a network: through one head of some layers, and around the others by their skip "
    "connections",
    "free directions": "ways to change a row of attention weights without changing the layer's output: the weights alone do "
    "not show where the output comes from",
    "own share": "the part of a token's state that comes from its own input",
    "influence": "how much a state changes with an input, measured by derivatives",
    "probe": "an input of one repeated symbol, in which only the network itself can distinguish positions",
    "chance": "the accuracy of the best guess that does not see the input",
    "attainable": "the accuracy of the best answers that depend only on their position and on the tokens that the mask shows",
    "floor": "the resolution of the number format: smaller values are rounding noise",
    "ceiling": "the largest possible value",
    "deviation": "standard deviation over random seeds: bands in charts, and numbers after ±",
    "seed": "a number from which data, initial weights, order and dropout are drawn: another seed is the whole "
    "experiment again",
    "setting": "task, training, depth, sizes and number format: only numbers of one setting are compared",
    "tie": "numbers whose difference, seed by seed, has a 95% interval that contains zero",
    "jacobian": "all derivatives of an output with respect to an input",
    "rollout": "the product of the attention weights of all layers",
    "ablation": "removal of a token, to see what changes",
    "normaliser": "what turns scores into attention weights",
    "sentinels": "special tokens that carry no input",
    "linear map": "a learned matrix that leads a state back towards the embedding of its token",
    "scorecard": "the table of headline numbers",
    "CSV": "a table as plain text, for any program",
    "Parquet": "a table as a binary file, with the types of its columns",
    "PDF": "a picture for print",
    "SVG": "a picture of lines, for print or screen",
}


def say_architecture(cells: DataFrame) -> str:
    """Write the parts of an architecture, with all values of a part that the grid varies."""
    values = {kind: sorted({str(value) for value in cells[kind].dropna()}) for kind in MADE_OF}
    return ", ".join(
        f"{kind.replace('_', ' ')} {' or '.join(map(short, names))}" for kind, names in values.items() if names
    )


def short(value: str) -> str:
    """Write a component with its options except null, false and none."""
    name, options = parts(value)
    words = [f"{key} {option}" for key, option in options.items() if option not in ("null", "false", "none", '"none"')]
    return f"{name} ({', '.join(words)})" if words else name


def say_component(kind: str, value: str) -> str:
    """Return the first sentence of the docstring of a component's file."""
    name = parts(value)[0]
    described = components.describe(kind, name)
    if described is None:
        return "what fits the task"
    # A file of ours has one component, which its docstring explains; one of a user's may have several.
    text = next(filter(None, described.docs if ":" in name else reversed(described.docs)), "")
    first = re.split(r"(?<=[^.\d][.?])\s+(?=[A-Z`\n])|\n\n", text, maxsplit=1)[0]
    return " ".join(first.split()) or f"{name}: its file has no description"


def say_training(cell: Series) -> str:
    """Write how a network was trained."""
    if not cell.epochs:
        return "not trained: random initial weights"
    optimizer, schedule = parts(cell.optimizer)[0], parts(cell.schedule)[0]
    dropout = f", dropout {cell.dropout:g}" if cell.dropout else ""
    return f"{optimizer}, learning rate {cell.lr:g} ({schedule}), {cell.epochs} epochs, batches of {cell.batch}{dropout}, {cell['dtype']}"


def write_glossary(cells: DataFrame) -> str:
    """Return the names of a run's networks and the page's words as HTML lists of definitions, with anchors for links."""
    kinds = {
        "architecture": {label(name): say_architecture(entries) for name, entries in cells.groupby("architecture")},
        "task": {
            label(name): say_component("task", entries.task_component.iloc[0])
            for name, entries in cells.groupby("task")
        },
        "training": {label(name): say_training(entries.iloc[0]) for name, entries in cells.groupby("training")},
    }
    for kind in (kind for kind in MADE_OF if kind in components.KINDS):
        names = sorted({parts(value)[0] for value in cells[kind].dropna()} - {"none"})
        kinds[kind.replace("_", " ")] = {name: say_component(kind, name) for name in names}
    kinds |= {"number": {headline.title: headline.meaning for headline in headlines()}, "word": WORDS}
    text = ""
    for kind, entries in kinds.items():
        rows = "".join(
            f'<div id="{anchor(name, kind)}"><dt>{html.escape(name)}</dt><dd>{html.escape(meaning)}</dd></div>'
            for name, meaning in entries.items()
        )
        head = html.escape(HEADS.get(kind, f"{kind.capitalize()}s"))
        text += f'<h3>{head}</h3><dl class="terms">{rows}</dl>' * bool(entries)
    return text


HEADS = {
    "architecture": "Architectures of this run",
    "number": "Headline numbers",
    "sentinels": "Special tokens",
    "mlp": "MLPs",
    "mlp residual": "Skip connections of MLPs",
    "residual": "Skip connections",
}


def anchor(name: str, kind: str) -> str:
    """Return the HTML id of an entry."""
    return f"term-{kind}-{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-').lower()}".replace(" ", "-")


def linker(architectures: Iterable[str] = ()) -> Callable[[str], str]:
    """Return a function that escapes a text and links the first use of each word to the glossary. Words that are part of a longer name,
    such as an architecture's, are not linked, and neither is a word that is an architecture's name in this run: what SAN, BERT or GPT
    means there is said by its parts."""
    ordered = sorted(WORDS.keys() - {*COMMON.split(", "), *architectures}, key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w+-])({'|'.join(map(re.escape, ordered))})(?![\w+-])")

    def link(text: str) -> str:
        seen: set[str] = set()

        def link_word(match: re.Match[str]) -> str:
            word = match[1]
            if word in seen:
                return word
            seen.add(word)
            return f'<a class="term" href="#{anchor(word, "word")}">{word}</a>'

        return pattern.sub(link_word, html.escape(text))

    return link


# Words of the glossary that are not linked, because they are common in plain sentences.
COMMON = "skip, norm, published, seed, setting, tie, causal, path, scorecard, probe, deviation, floor, influence, sentinels, linear map"

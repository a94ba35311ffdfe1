"""What a step is told about a network, and the room that it needs: sizes, where parameters lie, arrays for activations and gradients."""

import math
from typing import Any, NamedTuple

import numpy as np

from rankfall.train.fused.pages import memory
from rankfall.train.fused.tile import LANES

# Where parameters begin in a network's row of weights; -1: there is none. Of a layer: maps (weight, bias) and norms (gain, bias).
QUERY, KEY, VALUE, OUTPUT, INNER, OUTER, NORM1, NORM2, OF_LAYER = range(0, 18, 2)
# Of the ends: table of symbols, maps of the embedding, learned places and the map after them, norms, head, table of scores.
TABLE, FIRST, SECOND, PLACES, PLACED, NORM_IN, NORM_OUT, HEAD, SCORES, OF_ENDS = range(0, 20, 2)

NO_MLP, GELU, RELU = range(3)
CLASSES, VALUES, MASKED = range(3)
ADAM, ADAMW, SGD = range(3)

LINE = 16  # numbers in a line of the cache
MOST, LEAST = 2**18, 16  # logits at once, so that they stay in the cache, and places


class Form(NamedTuple):
    """What all members and steps of one batch size have in common."""

    learned: bool  # a step is taken; otherwise samples are evaluated, forward alone
    sequences: int
    tokens: int
    row: int  # tokens x sequences, filled up to whole vectors
    pairs: int  # sequences, where they have two tokens, else 0
    width: int
    heads: int
    head_width: int
    depth: int
    hidden: int  # width of the MLP
    activation: int
    normed: bool
    before: bool  # the norm comes before the sublayer
    keep: float  # share of the input that the residual keeps, and of the branch, for attention and for the MLP
    branch: float
    mlp_keep: float
    mlp_branch: float
    eps: float
    size_in: int
    symbols: int  # in the table of symbols; 0: inputs are vectors
    frozen: int  # the symbol that is not trained; -1: none
    turned: bool  # queries and keys are rotated
    added: bool  # something is added to scores
    size_out: int
    asked: int  # places of each sequence that are read out; 0: all
    loss: int
    constant: int  # the class that is the answer at some places whatever the input is; -1: none
    drop_scale: float  # 0: no dropout
    threshold: int


class Room(NamedTuple):
    """Activations of one network that backward needs, all layers. R = form.row: number t * sequences + b is of token t of sequence b."""

    source: Any  # (D or C, R) what was looked up, or the vectors
    first: Any  # (D, R) after the first map (behind gelu its slope there), its gelu, after the second
    active: Any
    second: Any
    placed: Any  # with places
    white0: Any
    inverse0: Any
    states: Any  # (L + 1, D, R)
    read1: Any  # (L, D, R) what attention reads, where a norm makes it
    q: Any  # (L, H d, R)
    k: Any
    v: Any
    weights: Any  # (L, H, keys, R), R of queries
    dropped: Any
    contexts: Any  # (L, H d, R)
    white1: Any  # (L, D, R)
    inverse1: Any  # (L, R)
    middle: Any  # (L, D, R) between attention and MLP
    read2: Any
    h: Any  # (L, F, R) before the activation; of gelu its slope there
    a: Any
    white2: Any
    inverse2: Any
    last: Any  # (D, R) after the last layer's dropout
    white3: Any
    inverse3: Any
    read3: Any  # what the head reads; with a last row of ones where only asked places are read
    seen: Any  # (D, N) the states at N asked places, in whole vectors
    outputs: Any  # (C, R)
    bits_in: Any  # (D, groups of 16 of R)
    bits_weights: Any  # (L, H keys, groups)
    bits_attention: Any  # (L, D, groups)
    bits_mlp: Any
    bits_out: Any


class Scratch(NamedTuple):
    """Space that each layer uses anew."""

    one: Any  # (D, R)
    two: Any
    three: Any
    d: Any  # (2, D, R) gradients of states, in turn
    scores: Any  # (H, keys, R)
    dscores: Any
    dq: Any  # (H d, R)
    dk: Any
    dv: Any
    dcontexts: Any
    dh: Any  # (F, R)
    da: Any
    dsource: Any
    doutputs: Any
    transposed: Any  # room for the transpose of any gradient above, or of embedded symbols, whose rows are filled up to whole vectors
    head: Any  # (D + 1, C') weights and bias of the head, classes in whole vectors, where only asked places are read
    dhead: Any
    logits: Any  # (N', C') of a part of the asked places
    dseen: Any  # (D, N)
    added: Any  # (H, T, T) keys before queries: what is added to scores
    dadded: Any
    stream: Any  # (elements / 16) of a mask in the order of their drawing
    raw: Any  # words of Philox, of so many blocks that vectors of them fill it
    rows: Any  # (R,) words of a mask, one for each number of a row
    spans: Any  # (N, 2) of a member's weights, as `rows.py` has it


def room_for(form: Form) -> Room:
    row, inner, width, depth = form.row, form.heads * form.head_width, form.width, form.depth
    square = (depth, form.heads, form.tokens, row)
    source = (width if form.symbols else form.size_in, row)
    state, mlp, before = (width, row), form.activation != NO_MLP, form.normed and form.before
    layered = (depth, width, row)
    groups = padded(row, 16) // 16
    drop = form.drop_scale > 0
    sizes: dict[str, tuple[int, ...]] = dict.fromkeys(Room._fields, state)
    sizes["seen"] = 1, 1
    sizes |= {"source": source, "states": (depth + 1, width, row), "outputs": (form.size_out, row)}
    sizes |= dict.fromkeys(("inverse0", "inverse3"), (row,)) | dict.fromkeys(("inverse1", "inverse2"), (depth, row))
    sizes |= dict.fromkeys(("q", "k", "v", "contexts"), (depth, inner, row))
    sizes |= {"weights": square, "dropped": square if drop else (depth, 1, 1, 1)}
    sizes |= {"white1": layered if form.normed else (depth, 1, 1), "read1": layered if before else (depth, 1, 1)}
    sizes |= dict.fromkeys(("middle", "white2"), layered if mlp else (depth, 1, 1))
    sizes |= {"read2": layered if mlp and before else (depth, 1, 1)}
    sizes |= dict.fromkeys(("h", "a"), (depth, form.hidden, row) if mlp else (depth, 1, 1))
    if form.asked:
        asked = padded(form.sequences * form.asked)
        sizes |= {"outputs": (1, 1), "inverse3": (asked,), "read3": (width + 1, asked)}
        sizes |= dict.fromkeys(("seen", "white3"), (width, asked))
    room = arrays(sizes)
    for name, count in (("weights", form.heads * form.tokens), ("attention", width), ("mlp", width)):
        room[f"bits_{name}"] = np.zeros((depth, count if drop else 1, groups), np.uint16)
    for name in ("bits_in", "bits_out"):
        room[name] = np.zeros((width if drop else 1, groups), np.uint16)
    return Room(**room)


def scratch_for(form: Form) -> Scratch:
    row, inner = form.row, form.heads * form.head_width
    square = (form.heads, form.tokens, form.tokens)
    hidden = (form.hidden if form.activation != NO_MLP else 1, row)
    sizes: dict[str, tuple[int, ...]] = dict.fromkeys(("one", "two", "three"), (form.width, row))
    sizes |= {"d": (2, form.width, row)} | dict.fromkeys(("scores", "dscores"), (*square[:2], row))
    sizes |= dict.fromkeys(("dq", "dk", "dv", "dcontexts"), (inner, row)) | dict.fromkeys(("dh", "da"), hidden)
    sizes |= {"dsource": (form.width if form.symbols else 1, row), "doutputs": (form.size_out, row)}
    sizes |= {"transposed": (row * padded(max(form.width, inner, hidden[0], form.size_out if not form.asked else 1)),)}
    sizes |= dict.fromkeys(("added", "dadded"), square)
    sizes |= dict.fromkeys(("head", "dhead", "logits", "dseen"), (1, 1))
    if form.asked:
        classes, asked = padded(form.size_out), form.sequences * form.asked
        at_once = min(asked, max(LEAST, MOST // classes))
        sizes |= dict.fromkeys(("head", "dhead"), (form.width + 1, classes)) | {"doutputs": (1, 1)}
        sizes |= {"logits": (at_once, classes), "dseen": (form.width, padded(asked))}
    made = arrays(sizes)
    most = form.sequences * max(form.heads * form.tokens**2, form.tokens * form.width)
    stream, rows = np.zeros(most // 16 + 3, np.uint16), np.zeros(padded(row, 16), np.uint16)
    spans = np.zeros((form.symbols // 2 + 2, 2), np.int64)
    return Scratch(**made, stream=stream, raw=np.zeros(256, np.uint64), rows=rows, spans=spans)


def arrays(sizes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Zeros of these sizes, each from the beginning of a line of the cache on, since a vector that lies on two is read twice; with a
    vector's room behind: the last sequences of the last token are read as part of a whole vector."""
    counts = [padded(math.prod(size) + LANES, LINE) for size in sizes.values()]
    ends = np.cumsum(counts)
    space = memory(int(ends[-1]))
    return {
        name: space[end - count : end][: math.prod(size)].reshape(size)
        for (name, size), end, count in zip(sizes.items(), ends, counts)
    }


def padded(count: int, unit: int = LANES) -> int:
    """The next multiple of a unit."""
    return -(-count // unit) * unit


def row_of(tokens: int, sequences: int) -> int:
    """Numbers of a row: whole vectors, and one more where rows would begin a multiple of 4,096 bytes apart: products read the same place
    of many rows, and those would share few lines of the cache."""
    row = padded(tokens * sequences)
    return row if row % 1024 else row + LANES

"""Train causal character models of CPython's documentation with one part changed, and measure the loss on text that is not trained on.

All models have the same texts from the same seeds, and a step has the same number of characters at each length. Also measured is the
variance of head outputs by position, before training.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from rankfall import Context, Evidence, Network, random_stream
from rankfall import evidence_row as row
from studies.claims.character_models.names import (
    AGAINST,
    ALIGNED,
    DELTA,
    DERF,
    EXCLUSIVE,
    EXCLUSIVE_CLAIM,
    FIRST,
    LONG,
    LOSS,
    MIDDLE,
    NORMED,
    NORMED_CLAIM,
    SHORT,
    USUAL,
    VARIANCE,
)
from studies.claims.draws import draw
from studies.claims.parts import XAVIER
from studies.claims.trained import grade, model, train
from studies.claims.untrained import make

COST = {"seconds": 180}
READS = {"topics": "pydoc_data.topics"}
BUILDS = {
    "attention": ["exclusive", "head_normed"],
    "embedding": ["token"],
    "head": ["classifier"],
    "init": ["deepnorm"],
    "mask": ["causal"],
    "mlp": ["gelu"],
    "norm": ["layer", "derf"],
    "position": ["rope"],
    "residual": ["add", "delta_skip"],
}
KINDS: dict[str, dict[str, Any]] = {
    USUAL: {},
    EXCLUSIVE: {"attention": "exclusive"},
    NORMED: {"attention": "head_normed"},
    DELTA: {"residual": "delta_skip"},
    DERF: {"norm": "derf"},
}
BOTH_LENGTHS = (USUAL, EXCLUSIVE)
SYMBOLS = 96  # printable ASCII and the line break
TEST = 0.1  # of the text


def character_models(
    context: Context,
    *,
    topics: str = "topics",
    steps: int = 300,
    characters: int = 512,
    depth: int = 2,
    width: int = 32,
    heads: int = 4,
    rate: float = 3e-3,
    seeds: int = 4,
) -> Evidence:
    yield from measure_variance(seeds)
    text = read_text()
    split = int((1 - TEST) * len(text))
    for seed in range(seeds):
        for length in (SHORT, MIDDLE, LONG):
            test = [cut(seed, -1 - part, text[split:], characters, length) for part in range(8)]
            for line, fields in KINDS.items():
                if length != MIDDLE and line not in BOTH_LENGTHS:
                    continue
                network = model(
                    seed, length, SYMBOLS, **{"mask": "causal", "position": "rope", "depth": depth, "width": width,
                    "heads": heads, "init": {"name": "normal", "deviation": width**-0.5}} | fields,
                )  # fmt: skip
                for _ in train(
                    network, partial(cut, seed, text=text[:split], characters=characters, length=length), steps, rate
                ):
                    pass
                with torch.no_grad():
                    loss = sum(float(grade(network, *batch)[0]) for batch in test) / len(test)
                    aligned, first = look(network, test[0][0])
                for claim, other in AGAINST.items():
                    if line in (USUAL, other) and (length == MIDDLE or claim == EXCLUSIVE_CLAIM):
                        yield row(claim, LOSS, line, length, seed, loss)
                if line in BOTH_LENGTHS:
                    yield row(EXCLUSIVE_CLAIM, ALIGNED, line, length, seed, aligned)
                if line in (USUAL, NORMED) and length == MIDDLE:
                    yield row(NORMED_CLAIM, FIRST, line, length, seed, first)


def read_text() -> Tensor:
    """Return the symbols of all topics, in order."""
    from pydoc_data.topics import topics  # type: ignore[import-untyped]

    codes = torch.tensor(list("\n".join(topics.values()).encode("ascii", "replace")))
    return torch.where(codes >= 32, codes - 32, 95).clamp(max=SYMBOLS - 1)


def cut(seed: int, step: int, text: Tensor, characters: int, length: int) -> tuple[Tensor, Tensor]:
    """Return pieces of the text (B, T) and the next symbols (B, T)."""
    rng = random_stream(seed, "claims", "character models", step)
    starts = torch.from_numpy(rng.integers(len(text) - length - 1, size=characters // length))
    pieces = text[starts.unsqueeze(1) + torch.arange(length + 1)]
    return pieces[:, :-1], pieces[:, 1:]


def look(network: Network, inputs: Tensor) -> tuple[float, float]:
    """Return the cosine of attention's output for a token and the token's own value, and the weight on the first token. Both are means over
    layers, heads and tokens of the second half."""
    state, cosines, weights = network.lift(inputs[None]), [], []
    half = inputs.shape[1] // 2
    for block in network.blocks:
        attention, read = block.attention, block.norm1(state)
        attention_weights = attention.weights(read)
        values = attention.split(attention.value(read))
        contexts = attention.contexts(attention_weights, read)
        cosines.append(torch.cosine_similarity(contexts, values, dim=-1)[..., half:].mean())
        weights.append(attention_weights[..., half:, 0].mean())
        state = block(state)
    return float(torch.stack(cosines).mean()), float(torch.stack(weights).mean())


def measure_variance(seeds: int) -> Evidence:
    """Return the evidence on head outputs of one causal attention of random tokens, before training."""
    tokens, width, heads = 64, 48, 4
    members = list(range(5 * seeds))
    x = draw(members, 1, tokens, width, name=NORMED_CLAIM)
    for line, attention in ((USUAL, "multihead"), (NORMED, "head_normed")):
        layer = (
            make(members, tokens, attention=attention, mask="causal", heads=heads, width=width, init=XAVIER)
            .blocks[0]
            .attention
        )
        squares = layer.contexts(layer.weights(x), x).square().mean((1, 2, -1))  # (K, T)
        logs = (squares / squares[:, -1:]).log10()
        for place in (0, 1, 3, 7, 15, 31, tokens - 1):
            for seed in members:
                yield row(NORMED_CLAIM, VARIANCE, line, place, seed, float(logs[seed, place]))

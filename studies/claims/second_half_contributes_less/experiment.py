"""Measure what each layer of a causal pre-norm character model of eight layers adds, over its state, before and after training.

Also measured is how much later layers' contributions change if a layer is left out.
"""

import itertools
from functools import partial

import torch
from torch import Tensor

from rankfall import Context, Evidence, Network
from rankfall import evidence_row as row
from studies.claims.character_models.experiment import SYMBOLS, TEST, cut, read_text
from studies.claims.second_half_contributes_less.names import BIRTH, EFFECT, NAME, SHARE, TRAINED
from studies.claims.trained import model, train

COST = {"seconds": 110}
READS = {"topics": "pydoc_data.topics"}
BUILDS = {
    "embedding": ["token"],
    "head": ["classifier"],
    "mask": ["causal"],
    "mlp": ["gelu"],
    "norm": ["rms"],
    "position": ["rope"],
    "residual": ["add"],
}


def second_half_contributes_less(
    context: Context,
    *,
    topics: str = "topics",
    steps: int = 300,
    characters: int = 512,
    length: int = 32,
    depth: int = 8,
    width: int = 32,
    heads: int = 4,
    rate: float = 3e-3,
    seeds: int = 8,
) -> Evidence:
    text = read_text()
    split = int((1 - TEST) * len(text))
    for seed in range(seeds):
        inputs, _ = cut(seed, -1, text[split:], characters, length)
        network = model(
            seed, length, SYMBOLS, mask="causal", position="rope", norm="rms", depth=depth, width=width, heads=heads,
            init={"name": "normal", "deviation": width**-0.5},
        )  # fmt: skip
        for step in train(
            network, partial(cut, seed, text=text[:split], characters=characters, length=length), steps, rate
        ):
            if step in (0, steps):
                yield from contributions(network, inputs, BIRTH if step == 0 else TRAINED, seed)


@torch.no_grad()
def contributions(network: Network, inputs: Tensor, line: str, seed: int) -> Evidence:
    """Return the evidence on one network: what layer l adds, a_l, over |X_(l-1)|; and the mean of |a_m - a_m'| / |a_m| over layers m > l,
    with a_m' without layer l. The last layer has none after it."""
    states = network.states(inputs[None])
    added = [after - before for before, after in itertools.pairwise(states)]
    for layer, change in enumerate(added):
        share = (change.norm(dim=-1) / states[layer].norm(dim=-1)).mean()
        yield row(NAME, SHARE, line, layer + 1, seed, float(share))
        state, effects = states[layer], []
        for later in range(layer + 1, len(added)):
            after = network.blocks[later](state)
            effects.append((((after - state) - added[later]).norm(dim=-1) / added[later].norm(dim=-1)).mean())
            state = after
        if effects:
            yield row(NAME, EFFECT, line, layer + 1, seed, float(torch.stack(effects).mean()))

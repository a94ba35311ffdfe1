"""Compare attributions of the last token with what it depends on, in seven networks built by hand and in networks with random weights.

By hand: for each method, the chance that a needed token ranks above a needless one (ties count half), in attributions averaged over all
inputs, and the share that needless tokens get. Random: the rank correlation over tokens with the effect of a token, by layer, averaged over
inputs. The effect is how far the last state moves when the token's sign is flipped. Both are also measured without the last token itself,
which skips pass on.
"""

import math

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from rankfall import Context, Evidence, Network, random_stream
from rankfall import evidence_row as row
from studies.claims.attribution_truth.methods import attributions, moves
from studies.claims.attribution_truth.names import AMONG, RANKS, RIGHT
from studies.claims.attribution_truth.networks import LAST, TOKENS, build_all
from studies.claims.draws import draw
from studies.claims.untrained import make

COST = {"seconds": 23}
BUILDS = {"mlp": ["none", "relu"], "norm": ["none", "layer"], "residual": ["none", "add"]}
CLAIMED = (
    "rollout_beats_raw_attention",
    "alti_beats_gradients",
    "value_zeroing_beats_weights",
    "decomposition_is_faithful",
)
WASTED = "share given to needless tokens, by network"


def attribution_truth(
    context: Context,
    *,
    depth: int = 6,
    tokens: int = 10,
    width: int = 32,
    heads: int = 4,
    samples: int = 12,
    seeds: int = 12,
) -> Evidence:
    for seed in range(seeds):
        for number, known in enumerate(build_all(seed), 1):
            for method, layers in attributions(known.network, known.inputs, known.direction).items():
                mean = layers[-1].mean(0)  # (T,)
                needed = torch.tensor([token in known.needed for token in range(TOKENS)])
                others, needed_others = mean[:LAST], needed[:LAST]
                right = chance(mean[needed], mean[~needed])
                right_others = chance(others[needed_others], others[~needed_others])
                wasted = float(mean[~needed].sum() / mean.sum())
                for claim in CLAIMED:
                    yield row(claim, RIGHT, method, number, seed, right)
                    yield row(claim, AMONG + RIGHT, method, number, seed, right_others)
                    yield row(claim, WASTED, method, number, seed, wasted, "it gives nothing")
        network, x, direction = random_network(seed, depth, tokens, width, heads, samples)
        effects = moves(network, x, direction, 2)
        for method, layers in attributions(network, x, direction).items():
            for layer, (attribution, effect) in enumerate(zip(layers, effects, strict=True), 1):
                ranks, ranks_others = (correlation(attribution[:, :end], effect[:, :end]) for end in (None, -1))
                for claim in CLAIMED:
                    yield row(claim, RANKS, method, layer, seed, ranks, "all the same")
                    yield row(claim, AMONG + RANKS, method, layer, seed, ranks_others)


def chance(above: Tensor, below: Tensor) -> float:
    """Return the chance that a value of `above` is larger than one of `below`. Ties count half."""
    first, second = above[:, None], below[None]
    return float((first > second).double().mean() + (first == second).double().mean() / 2)


def random_network(
    seed: int, depth: int, tokens: int, width: int, heads: int, samples: int
) -> tuple[Network, Tensor, Tensor]:
    """Return a network with attention, skips and norms after them, its inputs x (B, T, D), and the direction u (D,) of the sign. Tokens are
    p_i + s u with s = +-1, and samples differ in these signs."""
    init = {"name": "normal", "deviation": width**-0.5}
    fields = {"depth": depth, "width": width, "heads": heads, "residual": "add", "norm": "layer", "init": init}
    network = make([seed], tokens, torch.float64, **fields)
    network.embedding = torch.nn.Identity()
    network.norm_in = torch.nn.Identity()
    places = draw([seed], tokens, width, name="attribution_truth places")[0]
    direction = draw([seed], width, name="attribution_truth said")[0]
    signs = random_stream(seed, "claims", "attribution_truth", "signs").choice([-1.0, 1.0], size=(samples, tokens, 1))
    unit = direction / direction.norm()
    places = places - (places @ unit)[:, None] * unit
    size = width**0.5
    return network, places + torch.from_numpy(signs) * size * unit, unit


def correlation(attribution: Tensor, effect: Tensor) -> float:
    """Return Spearman's correlation over tokens, mean over samples."""
    pairs = zip(attribution.numpy(), effect.numpy(), strict=True)
    values = [spearmanr(a, b).statistic if np.ptp(a) and np.ptp(b) else math.nan for a, b in pairs]
    return float(np.mean(values))

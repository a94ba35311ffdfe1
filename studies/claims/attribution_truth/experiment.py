"""Attributions of the last token of seven networks built by hand, compared with its true dependence; and of networks with random weights,
compared with how far the state moves when a token's sign is flipped.

By hand: for each method the chance that a needed token is above an unneeded one (ties count half), in its attributions averaged over all
inputs, and the share that it gives to unneeded tokens. Random: the rank correlation over tokens with the effect, by layer, averaged over
inputs. Both also without the last token itself, which skips pass on.
"""

import math

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from rankfall import Context, Network, Rows, random_stream
from rankfall import evidence_row as row
from studies.claims.attribution_truth.methods import attributions
from studies.claims.attribution_truth.names import AMONG, RANKS, RIGHT
from studies.claims.attribution_truth.networks import LAST, TOKENS, build_all
from studies.claims.untrained import draw, make

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
) -> Rows:
    rows: Rows = []
    for seed in range(seeds):
        for number, known in enumerate(build_all(seed), 1):
            for method, layers in attributions(known.network, known.inputs, known.said).items():
                mean = layers[-1].mean(0)  # (T,)
                needed = torch.tensor([token in known.needed for token in range(TOKENS)])
                others, wanted = mean[:LAST], needed[:LAST]
                wasted = float(mean[~needed].sum() / mean.sum())
                for claim in CLAIMED:
                    rows += [
                        row(claim, RIGHT, method, number, seed, chance(mean[needed], mean[~needed])),
                        row(claim, AMONG + RIGHT, method, number, seed, chance(others[wanted], others[~wanted])),
                        row(claim, WASTED, method, number, seed, wasted, "it gives nothing"),
                    ]
        network, x, said = random_network(seed, depth, tokens, width, heads, samples)
        effects = moved_by_opposite(network, x, said)
        for method, layers in attributions(network, x, said).items():
            for layer, (found, effect) in enumerate(zip(layers, effects, strict=True), 1):
                for claim in CLAIMED:
                    rows += [
                        row(claim, RANKS, method, layer, seed, correlation(found, effect), "all the same"),
                        row(claim, AMONG + RANKS, method, layer, seed, correlation(found[:, :-1], effect[:, :-1])),
                    ]
    return rows


def chance(above: Tensor, below: Tensor) -> float:
    first, second = above[:, None], below[None]
    return float((first > second).double().mean() + (first == second).double().mean() / 2)


def random_network(
    seed: int, depth: int, tokens: int, width: int, heads: int, samples: int
) -> tuple[Network, Tensor, Tensor]:
    """Return a network with attention, skips and norms after them, and its inputs. Tokens are p_i + s u with s = +-1, and the rows of x (B,
    T, D) differ in these signs."""
    init = {"name": "normal", "deviation": width**-0.5}
    fields = {"depth": depth, "width": width, "heads": heads, "residual": "add", "norm": "layer", "init": init}
    network = make([seed], tokens, torch.float64, **fields)
    network.embedding = torch.nn.Identity()
    network.norm_in = torch.nn.Identity()
    places = draw([seed], tokens, width, name="attribution_truth places")[0]
    said = draw([seed], width, name="attribution_truth said")[0]
    signs = random_stream(seed, "claims", "attribution_truth", "signs").choice([-1.0, 1.0], size=(samples, tokens, 1))
    unit = said / said.norm()
    places = places - (places @ unit)[:, None] * unit
    size = width**0.5
    return network, places + torch.from_numpy(signs) * size * unit, unit


def moved_by_opposite(network: Network, x: Tensor, said: Tensor) -> list[Tensor]:
    """Return, by layer (B, T), how far the last token's state moves when the sign of token i is flipped."""
    whole = list(network.layers(x[None]))[1:]
    moved: list[list[Tensor]] = []
    for token in range(x.shape[1]):
        changed = x.clone()
        changed[:, token] -= 2 * (x[:, token] @ said)[:, None] * said
        states = list(network.layers(changed[None]))[1:]
        moved.append([(new - old)[0, :, -1].norm(dim=-1) for new, old in zip(states, whole, strict=True)])
    return [torch.stack(each, -1) for each in zip(*moved, strict=True)]


def correlation(found: Tensor, effect: Tensor) -> float:
    """Return Spearman's correlation over tokens, mean over samples."""
    pairs = zip(found.numpy(), effect.numpy(), strict=True)
    values = [spearmanr(one, other).statistic if np.ptp(one) and np.ptp(other) else math.nan for one, other in pairs]
    return float(np.mean(values))

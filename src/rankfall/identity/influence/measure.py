"""Influence of each position on the last token of an untrained causal stack, beside the closed form of uniform averaging.

There are two networks. `attention` has layers (1 - a) X + a SA(X) without norm and MLP; its value and output maps have gain one and its
scores spread as at width 768. `pre-norm` is a transformer with its usual initialisation, for which the closed form is compared at the a
that fits best.
"""

from itertools import product
from typing import Any, Literal

import numpy as np
import torch

from rankfall.design import Component, attention_alone
from rankfall.identity.influence.averaging import agreement, average_uniformly, continuum, exact, in_squares
from rankfall.identity.jacobian import orthonormal
from rankfall.measure.context import Context, Rows
from rankfall.nets.network import Network, Shape, build
from rankfall.random_streams import stream

NEEDS = "nothing"
BUILDS = {
    "init": ["published"],
    "mask": ["causal"],
    "mlp": ["gelu", "none"],
    "norm": ["layer", "none"],
    "position": ["none", "rope"],
    "residual": ["add", "convex"],
}
LIMITS = {"length": (4, None), "width": (2, None)}
# Uniform draws in +-1/sqrt(fan_in) have a variance of 1 / (3 fan_in); scores spread as at this width.
GAIN, SPREAD = 3**0.5, 768
SCAN = np.arange(0.01, 1.0, 0.01)
FORMS = {"averaging": average_uniformly, "smoothed density": exact, "density": continuum, "in squares": in_squares}
NONE = dict.fromkeys(("position", "alpha", "seed", "place", "share", "spearman", "distance", "from_squares", "fitted"))


def influence(
    context: Context,
    *,
    length: int = 64,
    depths: list[int] = [6, 24],
    alphas: list[float] = [0.3],
    positions: list[Literal["none", "rope"]] = ["none", "rope"],
    width: int = 32,
    heads: int = 4,
    seeds: int = 2,
    samples: int = 16,
    directions: int = 4,
) -> Rows:
    """Measure the influence in networks and evaluate the closed forms.

    `alphas`: weight of the attention beside the skip connection. A seed draws weights and inputs. Squares of blocks are means over
    `samples` random inputs, since which tokens are alike is random, and over `directions` of the last token's state for each.
    """
    rows: Rows = []
    for depth, weight in product(depths, alphas):
        about: dict[str, Any] = {"network": "none", "alpha": weight, "depth": depth, "length": length}
        reference = average_uniformly(length, depth, weight)
        for name, form in FORMS.items():
            rows += rows_by_place(form(length, depth, weight), reference, about | {"source": name})
    for position, alpha, seed in product(positions, [*alphas, None], range(seeds)):
        network = stack(max(depths), alpha, position, width, heads, length, seed)
        measured = measure_shares(network, depths, length, seed, samples, directions)
        for depth, shares in zip(depths, measured, strict=True):
            fitted = best(shares, depth) if alpha is None else None
            squares = None if alpha is None else agreement(shares, in_squares(length, depth, alpha))[1]
            reference = average_uniformly(length, depth, fitted if alpha is None else alpha)  # type: ignore[arg-type]
            about = {"network": "attention" if alpha else "pre-norm", "position": position, "alpha": alpha}
            about |= {"depth": depth, "length": length, "seed": seed, "source": "jacobian", "fitted": fitted}
            rows += rows_by_place(shares, reference, about, from_squares=squares)
            if alpha is None:
                rows += rows_by_place(reference, reference, about | {"source": "averaging"})
    return rows


def rows_by_place(shares: np.ndarray, reference: np.ndarray, about: dict[str, Any], **more: float | None) -> Rows:
    """Return a row for each position, and one without a position for the agreement with uniform averaging."""
    spearman, distance = agreement(shares, reference)
    about = NONE | about
    places = [
        about | {"quantity": "share", "place": place, "share": float(share)} for place, share in enumerate(shares, 1)
    ]
    return [*places, about | {"quantity": "agreement", "spearman": spearman, "distance": distance} | more]


def best(shares: np.ndarray, depth: int) -> float:
    """Return the weight of the attention at which uniform averaging is nearest."""
    distances = [agreement(shares, average_uniformly(len(shares), depth, alpha))[1] for alpha in SCAN]
    return float(SCAN[int(np.argmin(distances))])


def stack(depth: int, alpha: float | None, position: str, width: int, heads: int, length: int, seed: int) -> Network:
    """Build one untrained network; without `alpha`, a pre-norm transformer."""
    scores = {"scores": (SPREAD / width) ** 0.5}
    form: dict[str, Any] = {"mask": Component("causal"), "position": Component(position)}
    if alpha is None:
        form |= {"residual": Component("add"), "norm": Component("layer"), "mlp": Component("gelu")}
        form |= {"norm_placement": "pre", "init": Component("published", scores)}
    else:
        form |= {"residual": Component("convex", {"alpha": alpha})}
        form |= {"init": Component("published", {"scale": GAIN} | scores)}
    design = attention_alone("stack", depth=depth, heads=heads, width=width, **form)
    network = build(design, Shape("vectors", "values", length, 1, 1), 1, torch.float64)
    network.initialise([seed])
    return network.requires_grad_(False)


def measure_shares(
    network: Network, depths: list[int], length: int, seed: int, samples: int, directions: int
) -> list[np.ndarray]:
    """Return norms of the blocks d e_n / d x_i after each of the depths, as shares, estimated as in `blocks_of` for all samples at once."""
    rng = stream(seed, "influence")
    width = network.blocks[0].attention.query.weight.shape[1]
    count, inputs, drawn = min(directions, width), [], []
    for _ in range(samples):
        inputs.append(rng.normal(size=(length, width)))
        drawn.append([orthonormal(rng, 1, count, width)[0] for _ in depths])  # (C, D) for each depth
    x = torch.from_numpy(np.stack(inputs)).requires_grad_()  # (S, T, D)
    vectors = torch.from_numpy(np.array(drawn))  # (S, depths, C, D)
    with torch.enable_grad():
        states = list(network.layers(x[None]))
    norms = []
    for place, depth in enumerate(depths):
        squares = x.new_zeros(samples, length)
        for direction in range(count):
            # Samples are independent in a network, so the gradient of a sum over samples holds that of each.
            along = (states[depth][0, :, -1] * vectors[:, place, direction]).sum()
            (gradient,) = torch.autograd.grad(along, x, retain_graph=True)
            squares += gradient.square().sum(-1) * width / count
        norms.append(squares.mean(0).sqrt())
    by_depth = torch.stack(norms).numpy()
    return list(by_depth / by_depth.sum(1, keepdims=True))

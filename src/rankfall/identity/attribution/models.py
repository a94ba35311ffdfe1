"""Share of each token's state that comes from each token of the input, in a Hugging Face model.

The methods are those of `attribution`, for sampled tokens j. All D x D entries of all blocks would be T^2 D^2 derivatives per layer. So
`tokens` random tokens j are sampled from each text. Their blocks are estimated without bias from `directions` random orthonormal
directions of e_j, with the standard error of this draw; `directions: null` computes them exactly. x_i is the state that enters the first
layer: in BERT, after position and norm.
"""

import torch
from torch import Tensor

from rankfall.identity.attribution.layers import ABLATION, compute_layers, ratio_rows, share_rows
from rankfall.identity.jacobian import blocks_of
from rankfall.identity.model_views import model_views
from rankfall.identity.shares import ablation
from rankfall.measure.context import Context, Rows
from rankfall.measure.models import TEXTS, measure_models
from rankfall.models.source import PACKAGES
from rankfall.models.subject import Subject, first_states, layers_from
from rankfall.random_streams import stream

NEEDS = "nothing"
FILES, READS = TEXTS, PACKAGES
LIMITS = {"length": (2, None), "directions": (2, None)}
OUTLIERS, TIMES = 4, 6.0  # outliers: at most this many features of a layer, above this many times the median feature


@measure_models(samples=16, length=128, dtype="float32")
def model_attribution(
    context: Context, subject: Subject, *, tokens: int = 16, directions: int | None = 2, ablated: int = 2
) -> Rows:
    """Measure sampled tokens of every layer of a model.

    `ablated`: number of texts whose tokens are replaced one by one, with a forward pass for each token. Attention and norms are in
    float64.
    """
    samples, length = subject.batch.samples, subject.tokens
    rng = stream(subject.seed or 0, "attribution")
    drawn = [torch.from_numpy(rng.permutation(length)[:tokens]).sort().values for _ in range(samples)]
    chosen = torch.stack(drawn)  # (S, N)
    outliers = outlier_features(subject)
    squares: dict[str, list[Tensor]] = {}
    effects: list[Tensor] = []
    matrices: list[dict[str, list[Tensor]]] = [{} for _ in range(subject.layers)]
    ratios: list[dict[str, list[Tensor]]] = [{} for _ in range(subject.layers)]
    missing: list[dict[str, str]] = []
    for sample in range(samples):
        x, layers = first_states(subject, sample, sample + 1)[0], layers_from(subject, sample)
        for name, value in blocks_of(layers, x, chosen[sample], directions, rng, outliers).items():
            squares.setdefault(name, []).append(value)  # (M, L, N, T)
        if sample < ablated:
            effects.append(ablation(layers, x[None])[:, 0][:, chosen[sample]])  # (L, N, T)
        layer_matrices, missing, layer_ratios = compute_layers(list(model_views(subject, sample, sample + 1)))
        for layer in range(subject.layers):
            for name, matrix in layer_matrices[layer].items():
                matrices[layer].setdefault(name, []).append(matrix[0, chosen[sample]])
            for name, ratio in layer_ratios[layer].items():
                ratios[layer].setdefault(name, []).append(ratio[0])
    blocks = {name: torch.stack(values, 2) for name, values in squares.items()}  # (M, L, S, N, T)
    rows: Rows = []
    for layer in range(subject.layers):
        about = {"outliers": len(outliers[layer])}
        by_method = {name: value[:, layer] for name, value in blocks.items()}
        by_method |= {name: torch.stack(values).square()[None] for name, values in matrices[layer].items()}
        layer_rows = share_rows(by_method, chosen, missing[layer])
        if effects:
            few = {name: value[:, : len(effects)] for name, value in by_method.items()}
            few[ABLATION] = torch.stack([effect[layer] for effect in effects]).square()[None]
            with_ablation = share_rows(few, chosen[: len(effects)], {})
            layer_rows += [row for row in with_ablation if ABLATION in (row["method"], row["other"])]
        layer_rows += ratio_rows({name: torch.stack(values) for name, values in ratios[layer].items()}, missing[layer])
        rows += [{"layer": layer + 1, **about, **row} for row in layer_rows]
    return rows


def outlier_features(subject: Subject) -> list[Tensor]:
    """Return, for each layer 1 .. L, the largest few features whose mean size over all tokens is above `TIMES` the median feature's."""
    sizes: dict[int, Tensor] = {}

    def add(layer: int, state: Tensor) -> None:
        sizes[layer] = sizes.get(layer, 0) + state.double().abs().sum((0, 1, 2))

    for start, stop in subject.parts():
        subject.run([subject.variants[0]], start, stop, add)
    features = []
    for layer in range(1, subject.layers + 1):
        size = sizes[layer]
        largest = size.topk(min(OUTLIERS, len(size) - 1))
        features.append(largest.indices[largest.values > TIMES * size.median()].sort().values)
    return features

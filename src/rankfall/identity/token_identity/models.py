"""Identifiability of tokens from the hidden states of a Hugging Face model (Brunner et al. 2020, section 4)."""

from collections.abc import Iterator
from functools import cache, partial

import torch
from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.identity.probes import Recipe
from rankfall.identity.tokens import FEWEST, Sentences, spread_positions, token_rates
from rankfall.measure.context import Context, Rows
from rankfall.measure.models import TEXTS, measure_models
from rankfall.models.source import PACKAGES
from rankfall.models.subject import Subject, vocabulary
from rankfall.random_streams import stream
from rankfall.streams.cuts import Variant

NEEDS = "nothing"
FILES, READS = TEXTS, PACKAGES
LIMITS = {
    "seeds": (1, None),
    "sentences": (FEWEST, None),
    "length": (1, None),
    "batch": (1, None),
    "hidden": (1, None),
}


@measure_models(sentences=96, length=128, dtype="float32", variants=["SAN", "transformer"])
def model_token_identity(
    context: Context,
    subject: Subject,
    *,
    layers: list[int] | None = None,
    epochs: int = 6,
    batch: int = 256,
    lr: float = 1e-3,
    hidden: int = 256,
    places: int = 4,
) -> Rows:
    """Measure how often maps of hidden states identify their token. Probes of all variants and layers form a stack for each kind of map.

    `layers`: which ones, by default all. `dtype`: of the model's forward pass; probes are trained in float32. `batch`: in tokens;
    `hidden`: units of the map `mlp`; `places`: positions of a sentence at which tokens are compared with the whole vocabulary.
    """
    name, all_layers = subject.request.source.name, range(1, subject.layers + 1)
    if "input_ids" not in subject.batch.inputs:
        raise RankfallError(f"model {name!r} reads images, so it has no words to identify")
    if layers is not None and not set(layers) <= set(all_layers):
        raise RankfallError(f"layers: {layers} are asked for; the model has 1 to {subject.layers}")
    networks = list(sentences(subject, [0, *(all_layers if layers is None else sorted(set(layers)))], places))
    recipes = Recipe(epochs, batch, lr), Recipe(epochs, batch, lr, hidden)
    rates = token_rates(networks, *recipes, context.checkpoint, f" {subject.seed}")
    return [{"variant": variant.name} | row for variant, rows in zip(subject.variants, rates) for row in rows]


def sentences(subject: Subject, layers: list[int], places: int) -> Iterator[Sentences]:
    """Yield the sentences of every variant, shuffled once, so that no document falls into the test set as a whole."""
    words = subject.batch.inputs["input_ids"]
    order = torch.from_numpy(stream(subject.request.texts.seed, "sentences").permutation(len(words)))
    chosen, embeddings = spread_positions(places, words.shape[1]), None
    for variant in subject.variants:
        states = collect_states(subject, variant, layers)[:, order]  # (L', N, T, D)
        # Shared by all variants.
        embeddings = embeddings or cache(partial(vocabulary, subject, chosen, words[order[:2]], states[0, :2]))
        yield Sentences(subject.seed or 0, words[order], layers, states, chosen, embeddings)


def collect_states(subject: Subject, variant: Variant, layers: list[int]) -> Tensor:
    """Return states (L', N, T, D) of the chosen layers in float32, or float64 if the forward pass is."""
    kept: dict[int, list[Tensor]] = {layer: [] for layer in layers}

    def keep(layer: int, states: Tensor) -> None:
        if layer in kept:
            kept[layer].append(states[0].clone())

    for start, stop in subject.parts():
        subject.run([variant], start, stop, keep)
    return torch.stack([torch.cat(parts) for parts in kept.values()])

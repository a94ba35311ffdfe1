"""States of a model's whole vocabulary on entering the first layer, at chosen positions of a text."""

from __future__ import annotations

from collections.abc import Sequence
from traceback import clear_frames
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.errors import RankfallError
from rankfall.models.subject import Subject, first_layer
from rankfall.streams.forward import Wide, run_model
from rankfall.streams.record import tensors_in

TOKENS = 2**14  # in one pass


class _Entered(Exception):
    """The signal that ends a pass where the first layer begins."""


def entering(subject: Subject, words: Tensor) -> Tensor:
    """Return the states (B, T, D) that enter the first layer, for words (B, T). No layer is computed."""
    found: list[Tensor] = []

    def stop(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        size = words.numel() * subject.loaded.width
        found.extend(
            value for _, value in tensors_in((args, kwargs)) if value.numel() == size and value.is_floating_point()
        )
        raise _Entered

    module = first_layer(subject)
    handle = module.register_forward_pre_hook(stop, with_kwargs=True)
    try:
        with Wide():
            run_model(subject.loaded.model, {"input_ids": words})
    except _Entered as end:
        clear_frames(end.__traceback__)  # or the pass's tensors stay in memory until Python looks for cycles
    finally:
        handle.remove()
    if not found:
        raise RankfallError(
            f"model {subject.request.source.name!r}: its first layer receives no states of width {subject.loaded.width}"
        )
    state = found[0].transpose(0, 1) if subject.stream.batch_axis == 1 else found[0]
    return state.reshape(*words.shape, -1)


def vocabulary(subject: Subject, places: Sequence[int], known: Tensor, states: Tensor) -> list[Tensor]:
    """Return, for each position, the states (V, D) that enter the first layer if the token there is each word in turn.

    A word's embedding depends on its position, not on the words around it. As a check, the `known` words (B, T) must give
    their states (B, T, D) of a whole pass again.
    """
    words, length = int(subject.loaded.config.get_text_config().vocab_size), max(places) + 1
    if not torch.allclose(entering(subject, known), states, rtol=1e-4, atol=1e-5):
        raise RankfallError(
            f"model {subject.request.source.name!r}: its first layer does not receive the states of layer 0"
        )
    # Allocated at once: small tensors kept among large ones that are freed would fragment the heap.
    everywhere = torch.empty(words, len(places), subject.loaded.width)
    for part in torch.arange(words).split(max(1, TOKENS // length)):
        everywhere[part] = entering(subject, part.unsqueeze(1).expand(-1, length))[:, list(places)].float()
    return list(everywhere.unbind(1))

"""Find out whether the label of each output, which the gradient of the loss shows, is a token that the output reads."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rankfall.check.equal import named_tensors, token_inputs
from rankfall.check.recording import RecordedStream
from rankfall.check.steps import try_input
from rankfall.streams.arguments import in_float64
from rankfall.streams.editor import run_through
from rankfall.streams.flow import Edits
from rankfall.streams.record import tensors_in

MOST = 0.5  # share of outputs with a label from which on every token has one; hidden words are fewer


def reads_labels(recording: RecordedStream, ahead: int) -> bool:
    """Return whether the label of each output is the input token `ahead` steps later, and the last state at the output reads it."""
    tokens = recording.report.tokens
    for name in token_inputs(recording.examined.arguments, recording.report.shape):
        numbers = named_tensors(recording.examined.arguments)[name]
        if numbers.unique().numel() < 2 or (labels := labels_of(recording, int(numbers.max()))) is None:
            continue
        labels, inputs = labels[:, : tokens - ahead], numbers[:, ahead : ahead + labels.shape[1]]  # (S, T)
        labelled = labels >= 0
        if float(labelled.double().mean()) > MOST and torch.equal(labels[labelled], inputs[labelled]):
            rows = {step: states[-1] for step, states in try_input(recording, name, 1, tokens).rows.items()}
            coded = not ahead and bool(rows[tokens - 1][0])  # each token reads a code of all tokens
            if not coded and all(bool(changes[step - ahead]) for step, changes in rows.items()):
                return True
    return False


def own_losses(output: Any) -> list[Tensor]:
    """Return the single numbers among the outputs of a model."""
    return [tensor for _, tensor in tensors_in(output) if tensor.numel() == 1 and tensor.is_floating_point()]


def labels_of(recording: RecordedStream, largest: int) -> Tensor | None:
    """Return the labels (S, T) of a cross entropy over tokens up to `largest`, -1 where there is none, or None for any other loss.

    The gradient of a cross entropy at logits, probabilities minus the label, is negative for the label alone.
    """
    samples, tokens = recording.report.shape
    sizes: dict[tuple[int, ...], tuple[int, int]] = {
        (samples, count): (samples, count) for count in (tokens, tokens - 1)
    }
    sizes |= {(samples * count,): (samples, count) for count in (tokens, tokens - 1)}
    logits: list[Tensor] = []

    def keep(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = in_float64(func, args, kwargs)
        wide = isinstance(result, Tensor) and result.requires_grad and result.dim() > 1 and result.shape[-1] > largest
        if wide and tuple(result.shape[:-1]) in sizes:
            logits.append(result)
        return result

    with torch.enable_grad():
        edits = Edits(compute=keep, copies=True)
        output = run_through(recording.examined.model, recording.examined.arguments, recording.flow, edits, grad=True)
        losses = own_losses(output.output) if recording.loss is None else [recording.loss(output.output)]
        losses = [loss for loss in losses if loss.requires_grad]
    if not losses or not logits:
        return None
    for result, gradient in zip(logits, torch.autograd.grad(losses[0], logits, allow_unused=True)):
        if gradient is None or not bool(gradient.any()):
            continue
        negative, labelled = (gradient < 0).sum(-1), gradient.any(-1)
        if torch.equal(negative, labelled.to(negative)):
            return torch.where(labelled, gradient.argmin(-1), -1).view(sizes[tuple(result.shape[:-1])])
    return None

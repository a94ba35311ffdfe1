"""The check of the loss before training."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.check.named import Limit, Result, failed, named, passed, skipped, warned
from rankfall.check.recording import RecordedStream
from rankfall.errors import describe_error
from rankfall.streams.record import map_tensors, tensors_in

HIGH = Limit(
    1.5,
    "a loss above this multiple of a constant guess warns",
    "our choice: logits of unit variance add 0.5 nats to log V, 7% at V = 1000 and 22% at V = 10",
)
WRONG = Limit(
    3,
    "a loss above this multiple fails",
    "our choice, after Karpathy (2019, A Recipe for Training Neural Networks): verify the loss at init, log V for a softmax",
)
SUM = Limit(
    2,
    "a loss of zeros above this multiple of log V warns: a sum",
    "our choice: a mean over tokens is log V, a sum of two is twice as large",
)


@named("initial-loss", HIGH, WRONG, SUM)
def initial_loss(recording: RecordedStream) -> Result:
    """Is the loss at most about that of a constant guess?

    With a loss function (`loss=`, `--loss`): its value at the output over its value at an output of zeros, which is log V for a cross
    entropy over V classes and the mean square of the targets for a squared error. Without one: the mean of -log softmax over all V logits
    against log V, the expected loss for random labels; logits are the output that is as wide as an embedding has rows. An output that is a
    softmax already warns, and fails if the loss stays the same when 1 is added to the output, as that of another softmax does.
    """
    logits = find_logits(recording)
    if recording.loss is not None:
        try:
            loss, guess, moved = (
                float(recording.loss(map_tensors(recording.output, change)))
                for change in (torch.clone, torch.zeros_like, lambda x: x + 1)
            )
        except Exception as error:  # whatever the function raises
            return failed(f"the loss fails on the output: {describe_error(error, 120)}")
        reference = "that of an output of zeros"
        if any(is_probability(tensor) for _, tensor in tensors_in(recording.output)) and math.isclose(
            loss, moved, rel_tol=1e-6
        ):
            return failed("the output is a softmax, and the loss takes another one: pass logits to it")
        if logits is not None and guess > SUM * math.log(logits.shape[-1]):
            return warned(
                f"the loss of zeros is {guess:.4g}, and log {logits.shape[-1]} is less: is it a sum over tokens?"
            )
    else:
        if logits is None:
            return skipped("no loss is known: pass loss=, a function of the output")
        if is_probability(logits):
            return warned("the output is a softmax: cross entropy takes logits")
        loss, guess = float(-logits.log_softmax(-1).mean()), math.log(logits.shape[-1])
        reference = f"log {logits.shape[-1]}, for random labels"
    sentence = f"the loss is {loss:.4g}, and {guess:.4g} is {reference}"
    if not math.isfinite(loss) or loss > WRONG * guess:
        return failed(sentence)
    return warned(sentence) if loss > HIGH * guess else passed(sentence)


def is_probability(output: Tensor) -> bool:
    """Return whether the rows of an output are distributions, as a softmax returns them."""
    fits = output.is_floating_point() and output.dim() > 1 and output.shape[-1] > 1
    return fits and bool((output >= 0).all()) and bool(((output.sum(-1) - 1).abs() < 1e-4).all())


def find_logits(recording: RecordedStream) -> Tensor | None:
    """Return the output that is as wide as an embedding has rows, or None. An output with the name `logits` rules out the others."""
    rows = {module.num_embeddings for module in recording.examined.model.modules() if isinstance(module, nn.Embedding)}
    tensors: dict[Any, Tensor] = dict(tensors_in(recording.output))
    named = tensors.get(("logits",))
    candidates = [named] if named is not None else list(tensors.values())
    fitting = [
        tensor for tensor in candidates if tensor.dim() > 1 and tensor.is_floating_point() and tensor.shape[-1] in rows
    ]
    return fitting[0] if fitting and fitting[0].shape[-1] != recording.flow.width else None

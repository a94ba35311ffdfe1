"""The check of the loss before training."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.check.named import NONE, PASS, Limit, Result, failed, named, passed, skipped, warned
from rankfall.check.passes import named_tensors, token_inputs
from rankfall.check.recording import RecordedStream
from rankfall.check.steps import try_input
from rankfall.errors import describe_error
from rankfall.streams.arguments import in_float64
from rankfall.streams.editor import run_through
from rankfall.streams.flow import Edits
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
MOST = 0.5  # share of outputs with a label from which on every token has one; hidden words are fewer


@named("initial-loss", HIGH, WRONG, SUM)
def initial_loss(recording: RecordedStream) -> Result:
    """Is the loss at most about that of a constant guess?

    With a loss function (`loss=`, `--loss`): its value at the output over its value at an output of zeros, which is log V for a cross
    entropy over V classes and the mean square of the targets for a squared error. If the output holds log-probabilities, the constant
    guess is -log V for each. Without a loss: the mean of -log softmax over all V logits against log V, the expected loss for random labels;
    logits are the output that is as wide as an embedding has rows.

    If a model returns its own loss, that is compared with log V for its logits, if they are known, and a sum warns. If the label of each
    token, which the gradient of the loss shows, is a token that a causal model reads at the same place, it warns.

    An output that is a softmax already warns. It fails if the loss stays the same when 1 is added to the output, as that of another
    softmax does, or if the loss is negative, as without a logarithm. An output that is a softmax over its first axis fails.
    """
    result = judge_loss(recording)
    causal = result.verdict in (PASS, NONE) and any(flow.causal for flow in recording.examined.flows)
    if causal and reads_labels(recording, 0):
        label = "the label of each token is that token itself, which the output reads"
        return warned(f"{label}: are labels not shifted by one?")
    return result


def judge_loss(recording: RecordedStream) -> Result:
    """Judge the value of a loss at the output."""
    for _, tensor in tensors_in(recording.output):
        if not sums_to_one(tensor, -1) and (sums_to_one(tensor, 0) or sums_to_one(tensor, 0, log=True)):
            return failed(f"the output {tuple(tensor.shape)} is a softmax over its first axis, not its last")
    logits = find_logits(recording)
    if recording.loss is not None:
        try:
            loss, guess, moved = (
                float(recording.loss(map_tensors(recording.output, change)))
                for change in (torch.clone, guess_of, lambda x: x + 1 if x.is_floating_point() else x)
            )
        except Exception as error:  # whatever the function raises
            return failed(f"the loss fails on the output: {describe_error(error, 120)}")
        outputs = [tensor for _, tensor in tensors_in(recording.output)]
        if guess == 0 and any(float(own) == loss for own in own_losses(recording.output)):
            return own_loss(loss, logits)
        log = any(sums_to_one(tensor, -1, log=True) for tensor in outputs)
        reference = "that of equal probabilities" if log else "that of an output of zeros"
        if any(sums_to_one(tensor, -1) for tensor in outputs):
            if math.isclose(loss, moved, rel_tol=1e-6):
                return failed("the output is a softmax, and the loss takes another one: pass logits to it")
            if loss < 0:
                return failed("the output is a softmax, and the loss takes no logarithm of it: return log_softmax")
        if logits is not None and guess > SUM * math.log(logits.shape[-1]):
            # a whole number if it is a sum, also by sample; a CTC loss is no multiple of log V
            labels = guess / math.log(logits.shape[-1]) * len(recording.states[0])
            if abs(labels - round(labels)) < 1e-3:
                zeros = f"the loss of zeros is {guess:.4g}, and log {logits.shape[-1]} is less"
                return warned(f"{zeros}: is it a sum over tokens?")
    else:
        if logits is None and (own := own_losses(recording.output)):
            return own_loss(float(own[0]), None)
        if logits is None:
            return skipped("no loss is known: pass loss=, a function of the output")
        if sums_to_one(logits, -1):
            return warned("the output is a softmax: cross entropy takes logits")
        loss, guess = float(-logits.log_softmax(-1).mean()), math.log(logits.shape[-1])
        reference = f"log {logits.shape[-1]}, for random labels"
    sentence = f"the loss is {loss:.4g}, and {guess:.4g} is {reference}"
    if not math.isfinite(loss) or loss > WRONG * guess:
        return failed(sentence)
    return warned(sentence) if loss > HIGH * guess else passed(sentence)


def own_loss(loss: float, logits: Tensor | None) -> Result:
    """Judge the loss that a model returns: by the width of its logits, if these are known."""
    if not math.isfinite(loss):
        return failed(f"the model returns its loss, {loss:.4g}")
    if logits is None:
        return skipped(f"the model returns its loss, {loss:.4g}, and what a constant guess costs is not known")
    guess = math.log(logits.shape[-1])
    sentence = f"the model returns its loss, {loss:.4g}, and log {logits.shape[-1]} is {guess:.4g}"
    return warned(f"{sentence}: is it a sum over tokens?") if loss > SUM * guess else passed(sentence)


def sums_to_one(output: Tensor, axis: int, log: bool = False) -> bool:
    """Return whether an output holds distributions along an axis, as a softmax returns them, or their logarithms."""
    if not output.is_floating_point() or output.dim() < 2 or output.shape[axis] < 2:
        return False
    shares = output.exp() if log else output
    return bool((shares >= 0).all()) and bool(((shares.sum(axis) - 1).abs() < 1e-4).all())


def guess_of(output: Tensor) -> Tensor:
    """Return the output of a constant guess: equal log-probabilities if it holds such, else zeros. Integers, as lengths, stay."""
    if not output.is_floating_point():
        return output
    if sums_to_one(output, -1, log=True):
        return torch.full_like(output, -math.log(output.shape[-1]))
    return torch.zeros_like(output)


def find_logits(recording: RecordedStream) -> Tensor | None:
    """Return the output that is as wide as an embedding has rows, or None. An output with the name `logits` rules out the others."""
    rows = {module.num_embeddings for module in recording.examined.model.modules() if isinstance(module, nn.Embedding)}
    tensors: dict[Any, Tensor] = dict(tensors_in(recording.output))
    named = tensors.get(("logits",))
    candidates = [named] if named is not None else list(tensors.values())
    fitting = [x for x in candidates if x.dim() > 1 and x.is_floating_point() and x.shape[-1] in rows]
    return fitting[0] if fitting and fitting[0].shape[-1] != recording.flow.width else None


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
    counts = (tokens, tokens - 1)
    sizes: dict[tuple[int, ...], tuple[int, int]] = {(samples, count): (samples, count) for count in counts}
    sizes |= {(samples * count,): (samples, count) for count in counts}
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

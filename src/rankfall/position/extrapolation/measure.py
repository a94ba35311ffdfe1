"""Extrapolation: the accuracy of masked language models on texts longer or shorter than those of training.

Tokens of the split `test` are hidden once, as training's evaluation hides them: in windows of the trained length T, at places drawn from
the seed. The hidden text is then cut into windows of another length L, a multiple or a divisor of T. So at every length the
same tokens are hidden by the same symbols, and lengths differ only in the context that a network sees. At L = T the accuracy equals the
test accuracy of training bit for bit. Text that does not fill a last window is left out, so every accuracy is listed with the accuracy
at the trained length over exactly the same targets.

Networks of the same seed have the same places hidden, whatever their architecture, so that architectures can be compared in pairs.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rankfall import components
from rankfall.design import Architecture, parts
from rankfall.errors import RankfallError
from rankfall.measure.context import Context
from rankfall.nets.network import Network
from rankfall.tasks._dataset import TEST
from rankfall.train.data import EVALUATED
from rankfall.train.objectives.masked_tokens import answers, corrupt

TARGETS = "hidden"
REQUIRES = [({"training.objective": "masked_tokens"}, "how another objective hides tokens is not known")]
LIMITS = {"times": (0.001, None)}
COST = {"seconds": 2, "megabytes": 600}
COPIES = 4  # matrices T x T that a forward pass holds at once


@dataclass(frozen=True)
class HiddenText:
    """Windows of text in which some tokens are hidden and asked for."""

    seen: Tensor  # (1, N, T): what the network sees
    places: Tensor  # (1, N, M): the positions asked for
    wanted: Tensor  # (1, N, M): the original tokens, -1 where none is asked for

    def first(self, windows: int) -> "HiddenText":
        return HiddenText(self.seen[:, :windows], self.places[:, :windows], self.wanted[:, :windows])

    def batches(self, size: int) -> "Iterator[HiddenText]":
        for part in zip(*(x.split(size, 1) for x in (self.seen, self.places, self.wanted))):
            yield HiddenText(*part)

    def join(self, count: int) -> "HiddenText":
        """Join every `count` consecutive windows into one. Incomplete groups are dropped."""
        _, windows, length = self.seen.shape
        start = (torch.arange(windows, device=self.seen.device) % count * length).view(-1, 1)  # in the long window
        shape = (1, windows // count, -1)
        moved = HiddenText(self.seen, self.places + start, self.wanted).first(windows // count * count)
        return HiddenText(moved.seen.reshape(shape), moved.places.reshape(shape), moved.wanted.reshape(shape))

    def divide(self, count: int) -> "HiddenText":
        """Split every window into `count` windows. A place is asked for only in the window that contains it."""
        _, windows, length = self.seen.shape
        part = length // count
        places = self.places.unsqueeze(2).expand(-1, -1, count, -1)  # (1, N, count, M)
        elsewhere = places // part != torch.arange(count, device=places.device).view(-1, 1)
        wanted = self.wanted.unsqueeze(2).masked_fill(elsewhere, -1)
        seen = self.seen.reshape(1, windows * count, part)
        return HiddenText(seen, (places % part).flatten(1, 2), wanted.flatten(1, 2))


@torch.no_grad()
def extrapolation(
    context: Context, *, times: list[float] = [1, 2, 4, 8, 16], megabytes: int = 256
) -> list[dict[str, Any]]:
    """Measure the accuracy at each tested length.

    `times`: the tested lengths, in trained lengths: 1, 2, ..., or 0.5, 0.25, ...; `megabytes`: limit on the attention weights held at
    once.
    """
    text, data = hide_tokens(context), context.data
    limited = find_limit_of_length(context.cells[0].architecture)
    windows, trained = text.seen.shape[1:]
    at_trained = grade_windows(context.network, text, data.size_in, megabytes)
    empty: dict[str, Any] = {"targets": 0} | dict.fromkeys(("accuracy", "loss", "accuracy_trained", "loss_trained"))
    rows = []
    for factor in times:
        length = tested_length(trained, factor)
        labels = {"times": factor, "trained_length": trained, "length": length, "refused": ""}
        numbers: dict[str, Any] = {}
        if length > trained and limited:
            labels["refused"] = limited
        elif length > windows * trained:
            labels["refused"] = f"the held-out text has {windows * trained} tokens, too few for one window"
        elif length == trained:
            numbers = compare_lengths(mean_grades(text, *at_trained), mean_grades(text, *at_trained))
        else:
            count = max(1, length // trained)
            regrouped = text.join(count) if count > 1 else text.divide(trained // length)
            short = text.first(windows // count * count)
            targets = short.wanted.shape[1] * short.wanted.shape[2]
            graded = grade_windows(context.network, regrouped, data.size_in, megabytes)
            numbers = compare_lengths(
                mean_grades(regrouped, *graded), mean_grades(short, *(x[:, :targets] for x in at_trained))
            )
        about = {"chance": float(data.chance), **labels, **empty, "value_reason": labels["refused"]}
        rows.append(about | numbers)
    return rows


def hide_tokens(context: Context) -> HiddenText:
    """Return the test text with the tokens hidden that training's evaluation hides, batch by batch."""
    rates = {name: context.cells[0].training.objective.options[name] for name in ("rate", "hidden", "random")}
    batches = context.data.evaluation_batches(TEST, [cell.seed for cell in context.cells])
    return HiddenText(*(torch.cat(parts, 1) for parts in zip(*(corrupt(batch, **rates) for batch in batches))))


def grade_windows(network: Network, text: HiddenText, classes: int, megabytes: int) -> tuple[Tensor, Tensor]:
    """Return the loss at every target and whether the answer is right, both (1, N * M).

    The number of windows at once is that of training's evaluation, or fewer where their attention weights would exceed `megabytes`.
    """
    length = text.seen.shape[2]
    heads = max(getattr(block.attention, "heads", 1) for block in network.blocks)
    window = COPIES * heads * length**2 * next(network.parameters()).element_size()
    size = max(1, min(EVALUATED, int(megabytes * 2**20) // window))
    graded = [answers(network, part.seen, part.places, part.wanted, classes=classes) for part in text.batches(size)]
    losses, correct = (torch.cat(parts, 1) for parts in zip(*graded))
    return losses, correct


def mean_grades(text: HiddenText, losses: Tensor, correct: Tensor) -> dict[str, Any]:
    """Return means over the targets."""
    count = int((text.wanted != -1).sum())
    loss = losses.double().sum(1).item()
    return {"accuracy": int(correct.sum()) / count, "loss": loss / count, "targets": count}


def compare_lengths(now: dict[str, Any], then: dict[str, Any]) -> dict[str, Any]:
    """Return numbers beside those at the trained length. Accuracy and loss are null where outputs are not finite."""
    row = now | {f"{name}_trained": then[name] for name in ("accuracy", "loss")}
    row["kept"] = now["accuracy"] / then["accuracy"] if then["accuracy"] else None
    row["value_reason"] = "" if then["accuracy"] else "nothing was right at the trained length"
    if not math.isfinite(now["loss"]):
        row |= {"accuracy": None, "loss": None, "kept": None, "refused": "outputs at this length are not finite"}
        row["value_reason"] = row["refused"]
    return row


def tested_length(trained: int, times: float) -> int:
    """Return the tested length, a multiple or a divisor of the trained length."""
    length = round(times * trained)
    if length >= 1 and abs(length - times * trained) < 1e-6 and (length % trained == 0 or trained % length == 0):
        return length
    raise RankfallError(
        f"extrapolation: times: {times:g} times the trained length {trained} is neither a multiple nor a divisor of it; "
        "use 1, 2, 4, ... or 0.5, 0.25, ..."
    )


def find_limit_of_length(architecture: Architecture) -> str:
    """Return which component cannot run beyond the trained length; empty if all can."""
    for field, kind in parts(Architecture).items():
        component = getattr(architecture, field)
        default = "trained" if kind == "position" else "any"
        if component is not None and components.facts_of(kind, component.name).get("ADMITS", default) == "trained":
            return f"{kind} {component.name} admits no more than the trained length"
    return ""

"""References: how far one gets on a task without mixing tokens, and how far without positions; from the data alone.

A path of length 0 sees a token by itself, so the best it can do is what a table of the training set's most frequent answers
does: by symbol, by place, or by both. A network without positions gives equal tokens of a sample equal answers, so even one
that knows all answers is right only as often as the most frequent answer among them.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankfall.design import Designed
    from rankfall.nets.network import Network
    from rankfall.train.data import Data

TABLE = "references"
NEEDS = "cells"
TARGETS = "classes"


def references(network: "Network", data: "Data", cells: "Sequence[Designed]") -> list[dict[str, Any]]:
    """Accuracy of each predictor on each member's test set; of vectors, no two of which are equal, by position only."""
    rows = []
    for member in range(len(cells)):
        train, test = (seen(split.inputs[member]) for split in (data.train, data.test))
        wanted, answers = data.train.targets[member], data.test.targets[member]
        asked, right = wanted != -1, answers != -1
        for predictor in train:
            chosen = frequent(train[predictor][asked], wanted[asked], test[predictor][right])
            rows.append({"member": member, "predictor": predictor, "accuracy": share(chosen, answers[right])})
        if "token" in test:
            sample = torch.arange(len(answers)).unsqueeze(1).expand_as(answers)
            place = torch.stack([sample, test["token"][..., 0].cpu()], -1)[right.cpu()]
            chosen = frequent(place, answers[right], place)
            rows.append({"member": member, "predictor": "oracle", "accuracy": share(chosen, answers[right])})
    return rows


def seen(inputs: Tensor) -> dict[str, Tensor]:
    """What each predictor sees of every token: integers (N, T, number of things seen)."""
    position = torch.arange(inputs.shape[1], device=inputs.device).expand(inputs.shape[:2])
    if inputs.dim() == 3:
        return {"position": position.unsqueeze(-1)}
    return {
        "position": position.unsqueeze(-1),
        "token": inputs.unsqueeze(-1),
        "token_position": torch.stack([inputs, position], -1),
    }


def frequent(known: Tensor, labels: Tensor, asked: Tensor) -> Tensor:
    """The most frequent label (M,) of what is seen `asked` (M, S), by a table of what is `known` (N, S) with its labels (N,).

    What was never seen gets the most frequent label of all; of equally frequent ones the smallest.
    """
    _, group = torch.unique(torch.cat([known, asked]).cpu(), dim=0, return_inverse=True)
    labels = labels.cpu()
    counts = torch.zeros(int(group.max()) + 1, int(labels.max()) + 1, dtype=torch.int64)
    counts.index_put_((group[: len(known)], labels), torch.ones_like(labels), accumulate=True)
    best = torch.where(counts.sum(1) > 0, counts.argmax(1), counts.sum(0).argmax())
    return best[group[len(known) :]]


def share(chosen: Tensor, answers: Tensor) -> float:
    return float((chosen == answers.cpu()).double().mean())

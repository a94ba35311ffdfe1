"""References: the best accuracy without mixing tokens, and the best without positions, computed from the data alone.

A path of length 0 uses a single token. Its best answer is the one that is most frequent in the training set for the token's symbol, for
its position, or for both. A network without positions gives equal tokens of a sample equal answers. Even if it knew all answers, it
would be right only as often as the most frequent answer among equal tokens.
"""

from typing import Any

import torch
from torch import Tensor

from rankfall.measure.context import Context

TARGETS = "classes"


def references(context: Context) -> list[dict[str, Any]]:
    """Return the accuracy of each predictor on the test set. Vectors are assumed distinct and are predicted by position only."""
    data, rows = context.data, []
    train, test = (read_features(split.inputs[0]) for split in (data.train, data.test))
    labels, answers = data.train.targets[0], data.test.targets[0]  # (N, T) each; -1: no answer is asked for
    labelled, answered = labels != -1, answers != -1
    for predictor in train:
        predicted = frequent(train[predictor][labelled], labels[labelled], test[predictor][answered])
        rows.append({"predictor": predictor, "accuracy": share(predicted, answers[answered])})
    if "token" in test:
        sample = torch.arange(len(answers)).unsqueeze(1).expand_as(answers)
        place = torch.stack([sample, test["token"][..., 0].cpu()], -1)[answered.cpu()]
        predicted = frequent(place, answers[answered], place)
        rows.append({"predictor": "oracle", "accuracy": share(predicted, answers[answered])})
    return rows


def read_features(inputs: Tensor) -> dict[str, Tensor]:
    """Return predictor -> its features of every token, as integers (N, T, number of features)."""
    position = torch.arange(inputs.shape[1], device=inputs.device).expand(inputs.shape[:2])
    features = {"position": position.unsqueeze(-1)}
    if inputs.dim() == 2:
        features |= {"token": inputs.unsqueeze(-1), "token_position": torch.stack([inputs, position], -1)}
    return features


def frequent(known: Tensor, labels: Tensor, queries: Tensor) -> Tensor:
    """Return the most frequent label (M,) for each row of `queries` (M, S), counted over equal rows of `known` (N, S) with labels (N,).

    Rows that are not in `known` get the most frequent label overall. Ties go to the smallest label.
    """
    _, group = torch.unique(torch.cat([known, queries]).cpu(), dim=0, return_inverse=True)
    labels = labels.cpu()
    counts = torch.zeros(int(group.max()) + 1, int(labels.max()) + 1, dtype=torch.int64)
    counts.index_put_((group[: len(known)], labels), torch.ones_like(labels), accumulate=True)
    best = torch.where(counts.sum(1) > 0, counts.argmax(1), counts.sum(0).argmax())
    return best[group[len(known) :]]


def share(predicted: Tensor, answers: Tensor) -> float:
    """Return the share of answers that are predicted."""
    return float((predicted == answers.cpu()).double().mean())

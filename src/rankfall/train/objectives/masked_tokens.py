"""Masked language modelling: some tokens of the input are hidden, and the network predicts them (Devlin et al. 2019).

The same share of tokens of each sample is chosen anew in every step, by the member's seed and the place of the batch. Most of them are
replaced by the symbol that hides, some by a random word, and some stay. Only chosen tokens are targets and read out, a part at a time: all
logits of 32 members, 256 samples of 128 tokens and 30,000 words would be 126 GB, and those of the targets 19 GB.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from rankfall.errors import RankfallError
from rankfall.nets.primitives import Dropout, no_dropout
from rankfall.random_streams import stream, words
from rankfall.train.device import waits
from rankfall.train.objectives._base import Graded, Samples
from rankfall.train.philox import integers, keys_of, random_raw, uniform

ACCEPTS = "hidden"
LIMITS = {"rate": (0, 1), "hidden": (0, 1), "random": (0, 1), "megabytes": (1, None)}


def masked_tokens(
    module: Any,
    batch: Samples,
    drop: Dropout = no_dropout,
    *,
    rate: float = 0.15,
    hidden: float = 0.8,
    random: float = 0.1,
    megabytes: int = 128,
) -> Graded:
    """Grade the prediction of hidden tokens.

    `rate` is the share of tokens that are targets, `hidden` and `random` are the shares of these that are hidden or replaced at random,
    and `megabytes` limits the logits at once. The module needs `features` and `head`, as a network has.
    """
    batch = draw_masked_tokens(batch, rate=rate, hidden=hidden, random=random)
    assert batch.drawn is not None
    targets, (places,) = batch.targets, batch.drawn
    losses, right = answers(module, batch.inputs, places, targets, drop, megabytes=megabytes, classes=batch.size_in)
    asked = (targets != -1).flatten(1).sum(1)
    loss = losses.sum(1) / asked.clamp_min(1)
    return Graded(loss, asked, {"accuracy": right.sum(1)})


def draw_masked_tokens(batch: Samples, *, rate: float = 0.15, hidden: float = 0.8, random: float = 0.1) -> Samples:
    """Return the batch with the network's input (K, B, T), the targets (K, B, M), and their places."""
    if batch.drawn is not None:
        return batch
    inputs, places, targets = corrupt(batch, rate, hidden, random)
    return replace(batch, inputs=inputs, targets=targets, drawn=(places,))


def answers(
    module: Any,
    inputs: Tensor,
    places: Tensor,
    targets: Tensor,
    drop: Dropout = no_dropout,
    *,
    megabytes: int = 128,
    classes: int,
) -> tuple[Tensor, Tensor]:
    """Return the loss at each of the places (K, B, M) of the inputs (K, B, T) and whether the answer is right, both (K, B*M).

    They are zero and false where there is no target (-1).
    """
    x = module.features(inputs, drop)  # (K, B, T, D)
    states = x.gather(2, places.unsqueeze(-1).expand(-1, -1, -1, x.shape[-1])).flatten(1, 2)  # (K, B*M, D)
    targets = targets.flatten(1)  # (K, B*M), -1 if a sample has too few words

    def grade_part(states: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        scores = module.head(states.unsqueeze(1)).squeeze(1)  # (K, R, C)
        losses = cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=-1, reduction="none")
        return losses.view(len(targets), -1), scores.argmax(-1) == targets

    rows = max(1, int(megabytes * 2**20) // (len(states) * classes * states.element_size()))
    parts = list(zip(states.split(rows, 1), targets.split(rows, 1)))
    # Logits of a part are computed again for its gradient, so that those of two parts never exist at once.
    again = len(parts) > 1 and torch.is_grad_enabled()
    graded = [
        checkpoint(grade_part, *arguments, use_reentrant=False, preserve_rng_state=False)
        if again
        else grade_part(*arguments)
        for arguments in parts
    ]
    losses, right = (torch.cat(values, 1) for values in zip(*graded))
    return losses, right


def corrupt(batch: Samples, rate: float, hidden: float, random: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the network's input (K, B, T), the places of the targets (K, B, M), and the original tokens there, -1 for what is no word."""
    if not batch.special:
        raise RankfallError("masked_tokens: the task's data name no symbol that hides a token (`special` is 0)")
    count = max(1, round(rate * batch.inputs.shape[2]))
    on_device = waits(batch.inputs.device)
    places, kind, word = draw_on_device(batch, count) if on_device else draw_by_numpy(batch, count)
    original = batch.inputs.gather(2, places)
    changed = torch.where(kind < hidden, batch.special - 1, torch.where(kind < hidden + random, word, original))
    is_word = original >= batch.special
    inputs = batch.inputs.scatter(2, places, torch.where(is_word, changed, original))
    return inputs, places, torch.where(is_word, original, -1)


def draw_by_numpy(batch: Samples, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Draw for `count` tokens of each sample their places, numbers in [0, 1) that decide what happens to them, and random words.

    All three are (K, B, M).
    """
    members, samples, length = batch.inputs.shape
    places = np.empty((members, samples, count), dtype=np.int64)
    kinds = np.empty((members, samples, count))
    put = np.empty((members, samples, count), dtype=np.int64)
    protected = (batch.inputs < batch.special).numpy()  # padding and the like
    for member, seed in enumerate(batch.seeds):
        rng = stream(seed, "masks", *batch.place)
        order = rng.random((samples, length)) + protected[member]
        places[member] = np.sort(order.argpartition(count - 1, axis=-1)[:, :count], axis=-1)
        kinds[member] = rng.random((samples, count))
        put[member] = rng.integers(batch.special, batch.size_in, (samples, count))
    return torch.from_numpy(places), torch.from_numpy(kinds), torch.from_numpy(put)


def draw_on_device(batch: Samples, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Draw as `draw_by_numpy` does, with numbers generated on the device for all members at once."""
    members, samples, length = batch.inputs.shape
    below, positions, chosen = batch.size_in - batch.special, samples * length, samples * count
    spare = 64 + (chosen * below >> 30)  # four times the expected number of rejected draws, and more
    keys = keys_of([words(seed, "masks", *batch.place) for seed in batch.seeds], batch.inputs.device)
    drawn = random_raw(keys, (0, 0, 0, 0), positions + chosen + -(-chosen // 2) + spare)  # (K, words)
    order = uniform(drawn[:, :positions]).view(members, samples, length) + (batch.inputs < batch.special)
    where = order.topk(count, largest=False, sorted=False).indices.sort(-1).values
    kind = uniform(drawn[:, positions : positions + chosen]).view(members, samples, count)
    word = batch.special + integers(drawn[:, positions + chosen :], below, chosen).view(members, samples, count)
    return where, kind, word

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
from rankfall.nets.dropout import Dropout, no_dropout
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
    """Grade the prediction of hidden tokens. `rate` is the share of tokens that are targets, `hidden` and `random` are the shares of these
    that are hidden or replaced at random, and `megabytes` limits the logits at once. The module needs `features` and `head`, as a network
    has."""
    batch = draw_masked_tokens(batch, rate=rate, hidden=hidden, random=random)
    assert batch.drawn is not None
    wanted, (places,) = batch.targets, batch.drawn
    losses, right = answers(module, batch.inputs, places, wanted, drop, megabytes=megabytes, classes=batch.size_in)
    asked = (wanted != -1).flatten(1).sum(1)
    loss = losses.sum(1) / asked.clamp_min(1)
    return Graded(loss, asked, {"accuracy": right.sum(1)})


def draw_masked_tokens(batch: Samples, *, rate: float = 0.15, hidden: float = 0.8, random: float = 0.1) -> Samples:
    """Return the batch with the network's input (K, B, T), the targets (K, B, M), and their places."""
    if batch.drawn is not None:
        return batch
    seen, places, wanted = corrupt(batch, rate, hidden, random)
    return replace(batch, inputs=seen, targets=wanted, drawn=(places,))


def answers(
    module: Any,
    inputs: Tensor,
    places: Tensor,
    wanted: Tensor,
    drop: Dropout = no_dropout,
    *,
    megabytes: int = 128,
    classes: int,
) -> tuple[Tensor, Tensor]:
    """Return the loss at each of the places (K, B, M) of the inputs (K, B, T) and whether the answer is right, both (K, B*M). They are zero
    and false where there is no target (-1)."""
    x = module.features(inputs, drop)  # (K, B, T, D)
    seen = x.gather(2, places.unsqueeze(-1).expand(-1, -1, -1, x.shape[-1])).flatten(1, 2)  # (K, B*M, D)
    wanted = wanted.flatten(1)  # (K, B*M), -1 if a sample has too few words

    def part(seen: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
        scores = module.head(seen.unsqueeze(1)).squeeze(1)  # (K, R, C)
        each = cross_entropy(scores.flatten(0, 1), wanted.flatten(), ignore_index=-1, reduction="none")
        return each.view(len(wanted), -1), scores.argmax(-1) == wanted

    rows = max(1, int(megabytes * 2**20) // (len(seen) * classes * seen.element_size()))
    parts = list(zip(seen.split(rows, 1), wanted.split(rows, 1)))
    # Logits of a part are computed again for its gradient, so that those of two parts never exist at once.
    again = len(parts) > 1 and torch.is_grad_enabled()
    graded = [
        checkpoint(part, *one, use_reentrant=False, preserve_rng_state=False) if again else part(*one) for one in parts
    ]
    losses, right = (torch.cat(made, 1) for made in zip(*graded))
    return losses, right


def corrupt(batch: Samples, rate: float, hidden: float, random: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the network's input (K, B, T), the places of the targets (K, B, M), and the original tokens there, -1 if it is not a word."""
    if not batch.special:
        raise RankfallError("masked_tokens: the task's data name no symbol that hides a token (`special` is 0)")
    count = max(1, round(rate * batch.inputs.shape[2]))
    on_device = waits(batch.inputs.device)
    where, kind, word = draw_on_device(batch, count) if on_device else draw_by_numpy(batch, count)
    stood = batch.inputs.gather(2, where)
    put = torch.where(kind < hidden, batch.special - 1, torch.where(kind < hidden + random, word, stood))
    may = stood >= batch.special
    seen = batch.inputs.scatter(2, where, torch.where(may, put, stood))
    return seen, where, torch.where(may, stood, -1)


def draw_by_numpy(batch: Samples, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Draw for `count` tokens of each sample, all (K, B, M): their places, numbers in [0, 1) that decide what happens to them, and random
    words."""
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
    below, each, asked = batch.size_in - batch.special, samples * length, samples * count
    spare = 64 + (asked * below >> 30)  # four times the expected number of rejected draws, and more
    keys = keys_of([words(seed, "masks", *batch.place) for seed in batch.seeds], batch.inputs.device)
    drawn = random_raw(keys, (0, 0, 0, 0), each + asked + -(-asked // 2) + spare)  # (K, words)
    order = uniform(drawn[:, :each]).view(members, samples, length) + (batch.inputs < batch.special)
    where = order.topk(count, largest=False, sorted=False).indices.sort(-1).values
    kind = uniform(drawn[:, each : each + asked]).view(members, samples, count)
    word = batch.special + integers(drawn[:, each + asked :], below, asked).view(members, samples, count)
    return where, kind, word

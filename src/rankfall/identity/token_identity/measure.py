"""Identifiability of tokens from hidden states (Brunner et al. 2020, section 4).

The measure is how often a hidden state identifies the token of its sentence that it came from. Maps from a layer's states to the
embeddings that entered the network are trained on some sentences and tested on others by the nearest neighbour. The tested sentences
come from the task's test split if it has enough different ones. States have the network's own number format, so information lost to
rounding stays lost. Tasks with few symbols repeat words within a sentence. There the candidates `distinct` are few and the vocabulary is
no larger than a sentence of another task, so results on texts are more informative.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.identity.probes import Recipe
from rankfall.identity.tokens import FEWEST, Sentences, spread, token_rates
from rankfall.measure.context import Context
from rankfall.nets.network import Network
from rankfall.train.data import Data

TABLE = "token_identity"
NEEDS = "cells"
INPUTS = "tokens"
SEQUENCES = "different sequences"
LIMITS = {"sentences": (6, None), "epochs": (0, None), "batch": (1, None), "hidden": (1, None)}
COST = {"seconds": 1, "megabytes": 200}  # for cells about as large as those of the default configuration
AT_ONCE = 512  # words of the vocabulary per forward pass


@torch.no_grad()
def token_identity(
    context: Context,
    *,
    sentences: int = 160,
    epochs: int = 10,
    batch: int = 256,
    lr: float = 1e-3,
    hidden: int = 64,
    places: int = 4,
    transfer: bool = True,
) -> list[dict[str, Any]]:
    """Measure how often maps of hidden states identify their token.

    `batch`: in tokens; `hidden`: units of the map `mlp`; `places`: positions of a sentence at which tokens are compared with the whole
    vocabulary; `transfer`: also apply maps trained on one layer to the states of all others.
    """
    network, data, cells = context.network, context.data, context.cells
    chosen = [different(data, member, sentences) for member in range(len(cells))]
    where = spread(places if data.size_in else 0, chosen[0].shape[1])
    recipes = Recipe(epochs, batch, lr), Recipe(epochs, batch, lr, hidden)
    rows = []
    for count in sorted({len(words) for words in chosen}):  # almost always a single count
        group = [member for member, words in enumerate(chosen) if len(words) == count]
        # All members of the stack run; those outside the group repeat or cut their sentences, and their states are not used.
        words = torch.stack([one[torch.arange(count) % len(one)] for one in chosen])  # (K, N, T)
        states = torch.stack(
            [tokens(network, x) for x in network.layers(network.lift(words))], 1
        )  # (K, L + 1, N, T, D)
        every = vocabulary(network, data.size_in, where) if where else []
        networks = [
            Sentences(
                cells[member].seed,
                words[member].cpu(),
                list(range(states.shape[1])),
                states[member].cpu(),
                where,
                partial(of_member, every, member),
            )
            for member in group
        ]
        with torch.enable_grad():
            found = token_rates(networks, *recipes, context.checkpoint, f" of {count}", transfer=transfer)
        rows += [row | {"member": group[row["member"]]} for row in found]
    return rows


def different(data: Data, member: int, most: int) -> Tensor:
    """Return at most `most` distinct sentences (N, T) of a member. The last ones, which are tested, are the first of the test split."""
    found: dict[tuple[int, ...], Tensor] = {}
    for split in (data.test, data.train):
        for words in split.inputs[member]:
            if len(found) < most:
                found.setdefault(tuple(words.tolist()), words)
    if len(found) < FEWEST:
        what = f"token_identity: the data have {len(found)} different sentences, and {FEWEST} are needed to train, validate and test on"
        raise RankfallError(what)
    return torch.stack(list(found.values())[::-1])


def tokens(network: Network, states: Tensor) -> Tensor:
    """Return the states without sentinels."""
    return states if network.sentinels is None else network.sentinels.strip(states)


def vocabulary(network: Network, size: int, places: list[int]) -> list[Tensor]:
    """Return (K, V, D) at each position: the embedding of each word when it enters the first block in a sentence of this word alone."""
    members = next(network.parameters()).shape[0]
    parts: list[Tensor] = []
    for words in torch.arange(size, device=next(network.parameters()).device).split(AT_ONCE):
        rows = words.view(1, -1, 1).expand(members, -1, max(places) + 1)  # (K, V', T)
        parts.append(tokens(network, network.lift(rows))[:, :, places].cpu())
    return list(torch.cat(parts, 1).unbind(2))


def of_member(every: list[Tensor], member: int) -> Iterator[Tensor]:
    return (one[member] for one in every)

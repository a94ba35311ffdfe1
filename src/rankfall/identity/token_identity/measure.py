"""Identifiability of tokens from hidden states (Brunner et al. 2020, section 4).

The measure is how often a hidden state identifies the token of its sentence that it came from. Maps from a layer's states to the
embeddings that entered the network are trained on some sentences and tested on others by the nearest neighbour. The tested sentences
come from the task's test split if it has enough different ones. States have the network's own number format, so information lost to
rounding stays lost. Tasks with few symbols repeat words within a sentence. There the candidates `distinct` are few and the vocabulary is
no larger than a sentence of another task, so results on texts are more informative.
"""

from typing import Any

import torch
from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.identity.probes import Recipe
from rankfall.identity.tokens import FEWEST, Sentences, spread_positions, token_rates
from rankfall.measure.context import Context
from rankfall.measure.shared import strip_sentinels
from rankfall.nets.network import Network
from rankfall.train.data import Data

INPUTS = "tokens"
SEQUENCES = "different sequences"
LIMITS = {"sentences": (6, None), "epochs": (0, None)}
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
) -> list[dict[str, Any]]:
    """Measure how often maps of hidden states identify their token.

    `batch`: in tokens; `hidden`: units of the map `mlp`; `places`: positions of a sentence at which tokens are compared with the whole
    vocabulary.
    """
    network, data, (cell,) = context.network, context.data, context.cells
    words = distinct_sentences(data, sentences)  # (N, T)
    where = spread_positions(places if data.size_in else 0, words.shape[1])
    by_layer = network.layers(network.lift(words[None]))
    states = torch.stack([strip_sentinels(network, x)[0] for x in by_layer])  # (L + 1, N, T, D)
    embeddings = vocabulary(network, data.size_in, where) if where else []
    tested = Sentences(cell.seed, words.cpu(), list(range(len(states))), states.cpu(), where, lambda: embeddings)
    recipes = Recipe(epochs, batch, lr), Recipe(epochs, batch, lr, hidden)
    with torch.enable_grad():
        (rows,) = token_rates([tested], *recipes, context.checkpoint)
    return rows


def distinct_sentences(data: Data, most: int) -> Tensor:
    """Return at most `most` distinct sentences (N, T). The last ones, which are tested, are the first of the test split."""
    distinct: dict[tuple[int, ...], Tensor] = {}
    for split in (data.test, data.train):
        for words in split.inputs[0]:
            if len(distinct) < most:
                distinct.setdefault(tuple(words.tolist()), words)
    if len(distinct) < FEWEST:
        raise RankfallError(
            f"token_identity: the data have {len(distinct)} different sentences, and {FEWEST} are needed to train, validate and test on"
        )
    return torch.stack(list(distinct.values())[::-1])


def vocabulary(network: Network, size: int, places: list[int]) -> list[Tensor]:
    """Return (V, D) at each position: the embedding of each word when it enters the first block in a sentence of this word alone."""
    parts: list[Tensor] = []
    for words in torch.arange(size, device=next(network.parameters()).device).split(AT_ONCE):
        rows = words.view(1, -1, 1).expand(1, -1, max(places) + 1)  # (1, V', T)
        parts.append(strip_sentinels(network, network.lift(rows))[0][:, places].cpu())
    return list(torch.cat(parts).unbind(1))

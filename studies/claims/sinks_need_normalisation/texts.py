"""Draw texts of a Markov chain with a few triggers. After a trigger the token before it is repeated.

So a head has something to copy only after a trigger. The first token of each text is BOS.
"""

import numpy as np
import torch
from torch import Tensor

from rankfall import random_stream

TRIGGERS = 2  # the first symbols


def chain(seed: int, symbols: int) -> np.ndarray:
    """Return probabilities (V, V) of the next symbol, most of them small."""
    drawn = random_stream(seed, "claims", "sinks", "chain").gamma(0.3, size=(symbols, symbols)) + 1e-3
    return drawn / drawn.sum(-1, keepdims=True)


def texts(seed: int, step: int, probabilities: np.ndarray, samples: int, length: int) -> tuple[Tensor, Tensor]:
    """Return texts (B, 1 + T) and the next tokens (B, 1 + T), of which the last is not a target."""
    rng = random_stream(seed, "claims", "sinks", "text", step)
    symbols = len(probabilities)
    sums = probabilities.cumsum(-1)
    tokens = np.empty((samples, length), dtype=np.int64)
    tokens[:, 0] = rng.integers(symbols, size=samples)
    for place in range(1, length):
        before = tokens[:, place - 1]
        following = np.minimum((rng.random((samples, 1)) > sums[before]).sum(-1), symbols - 1)
        if place > 1:
            following = np.where(before < TRIGGERS, tokens[:, place - 2], following)
        tokens[:, place] = following
    texts_with_bos = np.concatenate([np.full((samples, 1), symbols), tokens], 1)
    targets = np.concatenate([texts_with_bos[:, 1:], np.full((samples, 1), -1)], 1)
    return torch.from_numpy(texts_with_bos), torch.from_numpy(targets)

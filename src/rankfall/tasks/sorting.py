"""Sort a sequence of symbols: token i of the output is the i-th smallest symbol of the input (Dong et al. 2021, section 4)."""

import numpy as np
import torch

from rankfall.tasks._dataset import Dataset, majority_chance, split_samples

INPUTS = "tokens"
TARGETS = "classes"
LIMITS = {"train": (1, None), "test": (1, None), "length": (1, None), "symbols": (1, None)}


def sorting(
    rng: np.random.Generator, *, train: int = 1000, test: int = 200, length: int = 8, symbols: int = 10
) -> Dataset:
    """Symbols are uniform and independent. Knowing nothing but the position already gives 0.34 at length 8, not 1 / symbols:
    small symbols are likely in front."""
    inputs = torch.from_numpy(rng.integers(symbols, size=(train + test, length)))  # (N, T)
    targets = inputs.sort(1).values
    return Dataset(
        split_samples(inputs, targets, train),
        size_in=symbols,
        size_out=symbols,
        chance=majority_chance(targets[:train], targets[train:], symbols),
    )

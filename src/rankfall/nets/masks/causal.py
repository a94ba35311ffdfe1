"""A token sees itself and what came before it."""

import torch
from torch import Tensor


def causal(length: int) -> Tensor | None:
    return torch.ones(length, length, dtype=torch.bool).tril()

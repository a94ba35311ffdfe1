"""A token sees itself and all tokens before it."""

import torch
from torch import Tensor


def causal(length: int) -> Tensor | None:
    return torch.ones(length, length, dtype=torch.bool).tril()

"""Sorting networks of other kinds of attention, as a PyTorch user would write them, one at a time (see `clean.py`): of depth 6 and width
48, as `machine.py` has them of Rankfall's parts. Nothing here is Rankfall's; that both compute the same is tested
(`tests/benchmarks/test_clean.py`)."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.clean import NETWORKS, Attention, Shape, step_of


class L2(Attention):
    def normalise(self, scores: Tensor) -> Tensor:
        return functional.normalize((scores - scores.amax(-1, keepdim=True)).exp(), dim=-1)


class Linear(Attention):
    """Katharopoulos et al. 2020."""

    def mix(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k = functional.elu(q) + 1, functional.elu(k) + 1
        return (q @ (k.transpose(-1, -2) @ v)) / (q @ k.sum(-2).unsqueeze(-1))


class Gate(Attention):
    """What softmax attention gives, times a sigmoid of its input."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__(width, heads, dropout)
        self.gate = nn.Linear(width, width)

    def mix(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        gate = torch.sigmoid(self.gate(x)).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, H, T, d)
        return gate * super().mix(x, q, k, v)


class Delta(Attention):
    """The delta rule: a state that is corrected token by token."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__(width, heads, dropout)
        self.rate = nn.Linear(width, heads)

    def mix(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, rate = functional.normalize(k, dim=-1), torch.sigmoid(self.rate(x)).transpose(1, 2)  # (B, H, T)
        state, read = x.new_zeros(*k.shape[:2], k.shape[-1], k.shape[-1]), []
        for t in range(x.shape[1]):
            key = k[:, :, t].unsqueeze(-1)  # (B, H, d, 1)
            error = v[:, :, t].unsqueeze(-1) - state @ key
            state = state + rate[:, :, t, None, None] * error * key.transpose(-1, -2)
            read.append((state @ q[:, :, t].unsqueeze(-1)).squeeze(-1))
        return torch.stack(read, 2)


class Gau(nn.Module):
    """The gated attention unit (Hua et al. 2022), of one head, with softmax."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones(2, 24)), nn.Parameter(torch.zeros(2, 24))
        self.gate, self.value, self.shared = (nn.Linear(width, size, bias=False) for size in (96, 96, 24))
        self.output, self.drop = nn.Linear(96, width, bias=False), nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        shared = functional.silu(self.shared(x))  # (B, T, s)
        q, k = (shared * gain + bias for gain, bias in zip(self.gain, self.bias))
        weights = self.drop((q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1))
        return self.output(functional.silu(self.gate(x)) * (weights @ functional.silu(self.value(x))))


BARE = NETWORKS["sorting"]
WHOLE = replace(BARE, mlp=True)
RMS = partial(nn.RMSNorm, eps=1e-12)
KINDS: dict[str, Shape] = {  # by their names in `machine.py`
    "SAN + skip": BARE,
    "transformer": WHOLE,
    "l2 + rms": replace(WHOLE, attention=L2, norm=RMS),
    "gau": replace(BARE, attention=Gau, norm=RMS),
    "linear attention": replace(WHOLE, attention=Linear),
    "gate": replace(WHOLE, attention=Gate),
    "delta rule": replace(WHOLE, attention=Delta),
    "24 layers": replace(WHOLE, depth=24),
}


def step(kind: str, dropout: float) -> Callable[[], None]:
    return step_of(KINDS[kind], dropout)


def compiled_step(kind: str, dropout: float) -> Callable[[], None]:
    """By code that PyTorch compiles for it, as it does the first time."""
    from torch import _dynamo
    from torch._inductor import config

    config.force_disable_caches = True
    _dynamo.reset()
    return step_of(KINDS[kind], dropout, torch.compile)

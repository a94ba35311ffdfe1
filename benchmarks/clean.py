"""The sorting network as a PyTorch user would write it: what stacking is measured against."""

import torch
from torch import Tensor, nn


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.width = heads, width
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.drop_weights, self.drop = nn.Dropout(dropout), nn.Dropout(dropout)
        self.norm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x: Tensor) -> Tensor:
        split = (x.shape[0], x.shape[1], self.heads, self.width // self.heads)
        q, k, v = (m(x).view(split).transpose(1, 2) for m in (self.query, self.key, self.value))  # (B, H, T, d)
        weights = self.drop_weights((q @ k.transpose(-1, -2) * split[-1] ** -0.5).softmax(-1))
        return self.norm(x + self.drop(self.output((weights @ v).transpose(1, 2).flatten(2))))


class Sorter(nn.Module):
    def __init__(self, depth: int = 6, width: int = 48, heads: int = 2, dropout: float = 0.1) -> None:
        super().__init__()
        self.symbols, self.places = nn.Embedding(10, width), nn.Embedding(8, width)
        self.norm, self.drop = nn.LayerNorm(width, eps=1e-12), nn.Dropout(dropout)
        self.layers = nn.Sequential(*(Attention(width, heads, dropout) for _ in range(depth)))
        self.head = nn.Linear(width, 10)

    def forward(self, index: Tensor) -> Tensor:
        x = self.drop(self.norm(self.symbols(index) + self.places.weight))
        return self.head(self.layers(x))


def make_step(dropout: float) -> object:
    """A function that trains one network one step on one batch of 30 sequences."""
    net = Sorter(dropout=dropout).train()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    inputs = torch.randint(10, (30, 8))
    targets = inputs.sort(1).values

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(net(inputs).flatten(0, 1), targets.flatten()).backward()
        optimizer.step()

    return step

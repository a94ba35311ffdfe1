"""Train networks that read items with labels, and then one of the items again, and predict its label. The item is at every place.

If two items are alike and have different labels, the answer shows a bias: a network that favours no place predicts either label equally
often. A gap is how much more often it predicts the label of the first than of the second. The network has causal attention of one head,
without positions, and an MLP that reads the query.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from rankfall import Context, Evidence, random_stream
from rankfall import evidence_row as row
from studies.claims.descent import descend
from studies.claims.trained_bias.names import ENDS, GAP, RIGHT
from studies.claims.untrained import make

COST = {"seconds": 85}
BUILDS = {"mask": ["causal"], "residual": ["none", "add"]}
GROWS, TURNS = "trained_bias_grows_with_depth", "trained_bias_turns_with_skips"
LABELS, CONTENT, ITEMS = 8, 16, 8
DEPTHS = {"no skips": (1, 2, 3), "skips": (2, 4, 8)}
DEVIATIONS = {"none": 0.2, "add": 0.08}  # of weights: with larger ones deep networks with skips do not learn


class Answerer(nn.Module):
    """A network of attention, and an MLP that reads the last token."""

    def __init__(self, seed: int, depth: int, residual: str, width: int) -> None:
        super().__init__()
        init = {"name": "normal", "deviation": DEVIATIONS[residual]}
        fields = {"depth": depth, "width": width, "mask": "causal", "residual": residual, "init": init}
        self.network = make([seed], ITEMS + 1, torch.float32, **fields).requires_grad_(True)  # type: ignore[arg-type]
        self.inner, self.outer = nn.Linear(width, width), nn.Linear(width, LABELS)
        rng = random_stream(seed, "claims", "trained_bias", "head")
        with torch.no_grad():
            for layer in (self.inner, self.outer):
                layer.weight.copy_(torch.from_numpy(rng.normal(0, width**-0.5, tuple(layer.weight.shape))))
                layer.bias.zero_()

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.inner(self.network.run(x[None])[0, :, -1]).relu())  # type: ignore[no-any-return]


def trained_bias(
    context: Context,
    *,
    steps: int = 600,
    samples: int = 64,
    tested: int = 2048,
    rate: float = 3e-3,
    seeds: int = 4,
    shallow: bool = False,
) -> Evidence:
    """Return the evidence. `shallow` limits it to the smallest depths."""
    for seed in range(seeds):
        for line, residual in (("no skips", "none"), ("skips", "add")):
            for depth in DEPTHS[line][: 1 if shallow else None]:
                answerer = Answerer(seed, depth, residual, CONTENT + LABELS)
                train(answerer, seed, steps, samples, rate)
                with torch.no_grad():
                    x, labels, queried = texts(seed, -1, tested)
                    right = float((answerer(x).argmax(-1) == labels[torch.arange(tested), queried]).float().mean())
                    gap, ends = (gap_between(answerer, seed, tested, 0, other) for other in (ITEMS // 2, ITEMS - 1))
                for claim in (GROWS, TURNS):
                    for quantity, value in ((GAP, gap), (ENDS, ends), (RIGHT, right)):
                        yield row(claim, quantity, line, depth, seed, value)


def train(answerer: Answerer, seed: int, steps: int, samples: int, rate: float) -> None:
    def loss(step: int) -> Tensor:
        x, labels, queried = texts(seed, step, samples)
        return cross_entropy(answerer(x), labels[torch.arange(samples), queried])

    for _ in descend(answerer.parameters(), loss, steps, rate):
        pass


def texts(seed: int, step: int, samples: int, same: tuple[int, int] | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Return tokens (B, items + 1, D), labels (B, items), and the queried item (B,). `same` are two alike items that are queried, with
    different labels."""
    rng = random_stream(seed, "claims", "trained_bias", "texts", step)
    contents = rng.normal(size=(samples, ITEMS, CONTENT))
    labels = rng.integers(LABELS, size=(samples, ITEMS))
    queried = rng.integers(ITEMS, size=samples)
    if same is not None:
        first, other = same
        contents[:, other] = contents[:, first]
        labels[:, other] = (labels[:, first] + rng.integers(1, LABELS, size=samples)) % LABELS
        queried[:] = first
    x = torch.zeros(samples, ITEMS + 1, CONTENT + LABELS)
    known = torch.from_numpy(contents).float()
    x[:, :ITEMS, :CONTENT] = known
    x[:, :ITEMS, CONTENT:] = LABELS**0.5 * one_hot(torch.from_numpy(labels), LABELS)
    x[:, ITEMS, :CONTENT] = known[torch.arange(samples), torch.from_numpy(queried)]
    return x, torch.from_numpy(labels), torch.from_numpy(queried)


def gap_between(answerer: Answerer, seed: int, samples: int, first_item: int, other: int) -> float:
    """Return how much more often the label of the first item is predicted than that of another, alike item."""
    x, labels, _ = texts(seed, -2, samples, (first_item, other))
    answers = answerer(x).argmax(-1)
    first, second = ((answers == labels[:, place]).float().mean() for place in (first_item, other))
    return float(first - second)

"""Train one causal attention layer without skip to answer a trigger by the mean of all tokens before it, and all other tokens by zero.

Measured is the weight on the first token where the answer is zero, with softmax, with ReLU weights, and with softmax that has a key of its
own. A token is a normal vector with three more numbers: whether it is the first, whether it is the trigger, and one over the number of
tokens before it, which lets weights that are not normalised be those of a mean. First token and trigger have vectors of zero.
"""

import torch
from torch import Tensor

from rankfall import Context, Evidence, Network, Shape, build_network, random_stream
from rankfall import evidence_row as row
from studies.claims.descent import descend
from studies.claims.triggers_need_a_sink.names import DRAWN, KINDS, NAME, QUIET, SOLVED
from studies.claims.untrained import design

COST = {"seconds": 30}
BUILDS = {"mask": ["causal"], "normaliser": ["relu", "sink"]}
FIRST_TRIGGER = 4  # tokens before it, the first one included


def triggers_need_a_sink(
    context: Context,
    *,
    steps: int = 400,
    length: int = 16,
    channels: int = 8,
    width: int = 32,
    samples: int = 64,
    rate: float = 1e-2,
    seeds: int = 5,
) -> Evidence:
    shown = sorted({0, steps // 8, steps // 4, steps // 2, steps})
    for seed in range(seeds):
        test = texts(seed, -1, 8 * samples, length, channels)
        for line, normaliser in KINDS.items():
            network = build_network(
                design({"mask": "causal", "normaliser": normaliser, "width": width,
                        "init": {"name": "normal", "deviation": width**-0.5}}),
                Shape("vectors", "values", length=length, size_in=channels + 3, size_out=channels), 1, torch.float32,
            )  # fmt: skip
            network.initialise([seed])

            def loss(step: int, network: Network = network, seed: int = seed) -> Tensor:
                inputs, targets, _ = texts(seed, step, samples, length, channels)
                return (network(inputs[None])[0] - targets).square().sum(-1).mean()

            for step in descend(network.parameters(), loss, steps, rate):
                if step in shown:
                    measured = measure(network, *test)
                    for quantity, value in measured.items():
                        yield row(NAME, quantity, line, step, seed, value)


def texts(seed: int, step: int, samples: int, length: int, channels: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return tokens (B, T, C + 3), answers (B, T, C) and the place of each text's trigger (B)."""
    rng = random_stream(seed, "claims", NAME, step)
    content = torch.from_numpy(rng.normal(size=(samples, length, channels))).float()
    place = torch.from_numpy(rng.integers(FIRST_TRIGGER, length, size=samples))
    index = torch.arange(samples)
    content[:, 0] = 0
    content[index, place] = 0
    before = content.cumsum(1)[index, place] / (place - 1).unsqueeze(1)  # the first token and the trigger do not count
    flags = torch.zeros(samples, length, 3)
    flags[:, 0, 0] = 1
    flags[index, place, 1] = 1
    flags[:, :, 2] = 1 / torch.arange(length).clamp(min=1)
    answers = torch.zeros(samples, length, channels)
    answers[index, place] = before
    return torch.cat([content, flags], -1), answers, place


@torch.no_grad()
def measure(network: Network, inputs: Tensor, answers: Tensor, place: Tensor) -> dict[str, float]:
    """Return the weight on the first token, how much of the answer is explained, and the size of other outputs."""
    outputs = network(inputs[None])[0]
    index = torch.arange(len(place))
    idle = torch.ones(inputs.shape[:2], dtype=torch.bool)
    idle[index, place] = False
    idle[:, 0] = False  # it sees only itself
    predicted, target = outputs[index, place], answers[index, place]
    weights = network.blocks[0].attention.weights(network.lift(inputs[None]))[0].mean(1)  # (B, T, T)
    return {
        DRAWN: float(weights[..., 0][idle].mean()),
        SOLVED: float(1 - (predicted - target).square().mean() / target.square().mean()),
        QUIET: float((outputs[idle].square().mean() / target.square().mean()).sqrt()),
    }

"""Judge each network by `rankfall check`, then train it as it is, with the change that the check measured as most helpful, and with
one change for all."""

import json
import os
import re
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rankfall import RankfallError
from studies.common import LENGTH, SYMBOLS, Rows, Small, Unit, grade, score, sorting
from thousandfold import Adam, train_many

SEEDS, RATE, LAST, WIDTH = 5, 2e-3, 20, 32
TYPES = ("bert", "megatron-bert", "roberta-prelayernorm")  # norms after the addition, and before the branch
QUARTER = (
    "weights of the layers times 0.25"  # the advice for most; an arm of its own shows what judging each network adds
)
FLAGS = ("rank-kept", "gradients-flow", "activations-sane", "attention-alive")
ROOT = Path(__file__).parents[2]


def units(size: str) -> list[Unit]:
    steps = {"tiny": 20, "tenth": 300, "full": 600}[size]
    depths = {"tiny": (2,), "tenth": (4, 8), "full": (2, 4, 8)}[size]
    gains = (1.0, 3.0) if size != "tiny" else (3.0,)
    skips = (1.0, 0.5, 0.0) if size != "tiny" else (0.0,)
    designs = list(product(depths, ("post", "pre") if size != "tiny" else ("pre",), skips, gains))
    if size != "tiny":  # expected to be healthy: controls
        designs += product(depths, ("peri",), (1.0,), (0.25, 0.5, 1.0))
        small = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7) if size == "full" else (0.25, 0.5)
        designs += product(depths, ("post", "pre"), (1.0,), small)
        designs += product(depths, TYPES, (1.0,), (1.0, 3.0))
    return [{"placement": p, "skip": s, "depth": d, "gain": g, "steps": steps} for d, p, s, g in designs]


def measure(unit: Unit, device: str) -> Rows:
    report = check(unit)
    flagged = [
        one["check"] for one in report["results"] if one["check"] in FLAGS and one["verdict"] in ("warn", "fail")
    ]
    tried = [one for one in report["interventions"] if one["residuals"][-1] is not None]
    if unit["placement"] in TYPES:  # whose code stays as it is
        tried = [one for one in tried if one["name"].startswith("weights of the layers")]
    best = max(tried, key=lambda one: one["residuals"][-1])
    about = {
        "flagged": bool(flagged),
        "flags": " ".join(flagged),
        "change": best["name"],
        "residual": report["layers"][-1]["residual"],
        "residual_changed": best["residuals"][-1],
    }
    (before, before_early), (after, after_early) = (
        train(unit, change, device) for change in ({}, options_of(best["name"]))
    )
    quartered = after if best["name"] == QUARTER else train(unit, options_of(QUARTER), device)[0]
    scores = {"before": before, "after": after, "quartered": quartered}
    scores |= {"before_early": before_early, "after_early": after_early}
    return [about | {"seed": seed} | {name: found[seed] for name, found in scores.items()} for seed in range(SEEDS)]


def train(unit: Unit, change: dict[str, Any], device: str) -> tuple[list[float], list[float]]:
    """Return the scores by seed at the end, and after a quarter of the steps, when healthy networks have not learned all."""

    def build(seed: int) -> nn.Module:
        torch.manual_seed(seed)
        return make(unit, change)

    optimizer = Adam(lr=RATE, clip=1.0)
    steps, seeds = unit["steps"], range(SEEDS)
    result = train_many(build, grade, sorting, optimizer=optimizer, seeds=seeds, steps=steps, device=device)
    last, early = (
        result.metrics["accuracy"][:end][-LAST:].mean(0).tolist() for end in (steps, max(steps // 4, 1))
    )  # (seeds,)
    return tuple(  # type: ignore[return-value]
        [0.0 if dead is not None else score(value, "sorting") for value, dead in zip(values, result.diverged)]
        for values in (last, early)
    )


class Typed(nn.Module):
    """A bidirectional type of the transformers library with a classifier. `factor`: of the matrices of its layers."""

    def __init__(self, unit: Unit, factor: float = 1.0) -> None:
        from transformers import AutoConfig, AutoModel

        super().__init__()
        sizes = {
            "vocab_size": SYMBOLS + 1,
            "pad_token_id": SYMBOLS,
            "max_position_embeddings": 2 * LENGTH,
            "hidden_size": WIDTH,
        }
        sizes |= {"num_hidden_layers": unit["depth"], "num_attention_heads": 2}
        sizes |= {"intermediate_size": 2 * WIDTH, "initializer_range": unit["gain"] * WIDTH**-0.5}
        still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        config = AutoConfig.for_model(unit["placement"], **sizes, **still)
        self.model = AutoModel.from_config(config, add_pooling_layer=False)
        self.head = nn.Linear(WIDTH, SYMBOLS)
        with torch.no_grad():
            for matrix in self.model.encoder.layer.parameters():
                if matrix.dim() > 1:
                    matrix.mul_(factor)

    def forward(self, tokens: Tensor) -> Tensor:
        scores: Tensor = self.head(self.model(tokens).last_hidden_state)
        return scores


def make(unit: Unit, change: dict[str, Any]) -> nn.Module:
    if unit["placement"] in TYPES:
        return Typed(unit, change.get("gain", 1.0))
    parts = {name: unit[name] for name in ("placement", "skip", "gain")}
    parts["gain"] *= change.get("gain", 1.0)
    return Small(SYMBOLS, SYMBOLS, LENGTH, unit["depth"], **parts | {k: v for k, v in change.items() if k != "gain"})


def judged(unit: Unit) -> nn.Module:
    """Return a network of a unit for `check`, with the first queries and keys as buffers.

    The engine needs buffers that are alike in all members, so a network to train has them as parameters, which are
    reported as unused."""
    module = make(unit, {})
    for block in getattr(module, "blocks", []):
        for name in ("first_query", "first_key"):
            value = getattr(block, name).detach()
            delattr(block, name)
            block.register_buffer(name, value)
    return module


def options_of(name: str) -> dict[str, Any]:
    """Return a change of `rankfall check` as options of a block."""
    root = re.search(r"1/sqrt\((\d+)\)", name)
    factor = int(root[1]) ** -0.5 if root else float(re.search(r"times ([\d.]+)|$", name)[1] or 1)  # type: ignore[index]
    for begins, option, value in (
        ("weights of the layers", "gain", factor),
        ("branches that mix tokens", "mixing", factor),
        ("branches", "branch", factor),
        ("a norm after each branch", "behind", True),
        ("a norm after each addition", "after", True),
        ("a skip around each layer", "around", factor),
    ):
        if name.startswith(begins):
            return {option: value}
    raise RankfallError(f"check tried {name!r}, which this study cannot build")


def check(unit: Unit) -> dict[str, Any]:
    """Return what `rankfall check --json` says of the network with seed 0."""
    text = f"""
import torch
from studies.common import sorting
from studies.warning.experiment import judged
def build():
    torch.manual_seed(0)
    return judged({unit!r})
def inputs():
    return sorting(0, 0)[0][:8]
"""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "network.py"
        file.write_text(text)
        paths = [str(ROOT), *filter(None, sys.path)]
        done = subprocess.run(
            [
                Path(sys.executable).with_name("rankfall"),
                "check",
                f"{file}:build",
                "--inputs",
                f"{file}:inputs",
                "--json",
            ],
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        )
    if not done.stdout:
        raise RankfallError(f"rankfall check failed: {done.stderr.strip()[-300:]}")
    (stream,) = json.loads(done.stdout)["streams"]
    found: dict[str, Any] = stream
    return found

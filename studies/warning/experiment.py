"""Judge each network by `rankfall check`, then train it as it is and with the change that the check measured as most helpful."""

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
FLAGS = ("rank-kept", "gradients-flow", "activations-sane", "attention-alive")
ROOT = Path(__file__).parents[2]


def units(size: str) -> list[Unit]:
    steps = {"tiny": 20, "tenth": 300, "full": 1500}[size]
    depths = {"tiny": (2,), "tenth": (4, 8), "full": (2, 4, 6, 8, 12)}[size]
    gains = (1.0, 3.0) if size != "tiny" else (3.0,)
    skips = (1.0, 0.5, 0.0) if size != "tiny" else (0.0,)
    designs = list(product(depths, ("post", "pre") if size != "tiny" else ("pre",), skips, gains))
    if size != "tiny":  # expected to be healthy: controls
        designs += product(depths, ("peri",), (1.0,), (0.25, 0.5, 1.0))
        designs += product(depths, ("post", "pre"), (1.0,), (0.25, 0.5))
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
    found: dict[str, list[float]] = {}
    for arm, change in (("as it is", {}), ("changed", options_of(best["name"]))):

        def build(seed: int, change: dict[str, Any] = change) -> nn.Module:
            torch.manual_seed(seed)
            return make(unit, change)

        result = train_many(
            build,
            grade,
            sorting,
            optimizer=Adam(lr=RATE, clip=1.0),
            seeds=range(SEEDS),
            steps=unit["steps"],
            device=device,
        )
        accuracy = result.metrics["accuracy"][-LAST:].mean(0).tolist()  # (members,)
        found[arm] = [
            0.0 if dead is not None else score(value, "sorting") for value, dead in zip(accuracy, result.diverged)
        ]
    about = {
        "flagged": bool(flagged),
        "flags": " ".join(flagged),
        "change": best["name"],
        "residual": report["layers"][-1]["residual"],
        "residual_changed": best["residuals"][-1],
    }
    return [
        about | {"seed": seed, "before": found["as it is"][seed], "after": found["changed"][seed]}
        for seed in range(SEEDS)
    ]


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

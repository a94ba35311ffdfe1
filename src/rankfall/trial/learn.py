"""Call a user's component once, at small sizes, and write what this shows: `python -m rankfall.trial.learn KIND NAME FILE`.

An attention is built with a position, a normaliser and a mask that note which of their methods it calls. `learned.py` starts this process.
"""

import json
import sys
import sysconfig
from collections.abc import Callable
from functools import partial
from inspect import isclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankfall import components
from rankfall.errors import describe_error
from rankfall.nets.attentions.multihead import Multihead
from rankfall.nets.dropout import no_dropout
from rankfall.nets.earlier import asks
from rankfall.nets.masks._mask import Mask
from rankfall.nets.masks.none import none as no_mask
from rankfall.nets.mlps.gelu import Gelu
from rankfall.nets.network import bind_named
from rankfall.nets.normalisers.softmax import softmax
from rankfall.nets.norms.layer import Layer
from rankfall.nets.positions._base import HOOKS, Position
from rankfall.nets.primitives import Sizes
from rankfall.nets.residuals.add import add
from rankfall.trial.declared import find_breaks

MEMBERS, SAMPLES, TOKENS, LONGER = 2, 2, 6, 11
SIZES = Sizes(
    members=MEMBERS, length=TOKENS, depth=2, width=8, heads=2, head_width=4, mlp_width=16, size_in=5, size_out=3, layer=1
)  # fmt: skip
# What a measure may use of an attention -> the attributes that make it up.
PARTS = {"weights": ("weights",), "heads": ("heads", "contexts", "emit"), "values": ("value", "output", "maps")}
OFFERED = {"rotate": "queries", "products": "products", "bias": "scores", "context": "values", "prepare": "lengths"}


def learn_task(task: Any) -> dict[str, Any]:
    """Draw the data of a task with its defaults: integers are tokens or classes, other numbers are vectors or values."""
    made: Any = task() if isclass(task) else task
    data = made(np.random.default_rng(0))
    inputs, targets = data.train.inputs, data.train.targets
    hidden = data.special > 0 and inputs.shape == targets.shape and torch.equal(inputs, targets)
    kind = "values" if targets.is_floating_point() else "classes"
    return {"INPUTS": "vectors" if inputs.is_floating_point() else "tokens", "TARGETS": "hidden" if hidden else kind}


def learn_attention(attention: Any) -> dict[str, Any]:
    """Find which of its position, normaliser and mask an attention calls, which sizes it reads, and which parts it has."""
    called: set[str] = set()

    class NotedSizes(Sizes):
        def __getattribute__(self, name: str) -> Any:
            called.add(name)
            return super().__getattribute__(name)

    sizes: Sizes = NotedSizes(**vars(SIZES))
    if hasattr(attention, "sized"):
        sizes = attention.sized(sizes)
    net = attention(sizes, NotedPosition(called), NotedNormaliser(called), NotedMask(called), "blocks.0")
    x = fill(net).normal_(generator=torch.Generator().manual_seed(1))
    earlier: dict[str, Any] = {"earlier": {}} if asks(net) else {}
    with torch.no_grad():
        net(x, no_dropout, **earlier)
        provided = [name for name, parts in PARTS.items() if all(hasattr(net, part) for part in parts)]
        if "weights" in provided:
            net.weights(x)
    return {
        "PROVIDES": provided,
        "OFFERS": [offered for method, offered in OFFERED.items() if method in called],
        "IGNORES": [name for name in ("normaliser", "mask", "heads", "head_width") if name not in called],
        "BREAKS": ["blocks"] if asks(net) else [],
    }


def learn_position(position: Any) -> dict[str, Any]:
    """Find on what a position acts, whether it runs at other lengths, and whether what it adds to scores depends on offsets alone."""
    made = position(SIZES)
    fill(made)
    touches = [place for place, method in HOOKS.items() if overrides(made, method)]
    return {
        "TOUCHES": touches,
        "ADMITS": "any" if all(runs_at(made, place, LONGER) for place in touches) else "trained",
        "PROVIDES": ["bias by offset"] if "scores" in touches and adds_by_offset(made) else [],
        "BREAKS": ["values"] if "values" in touches else [],  # what it adds is part of no value map
    }


def learn_normaliser(normaliser: Any) -> dict[str, Any]:
    """Find whether a normaliser prepares queries and keys, and whether it has factors by offset."""
    return {
        "TOUCHES": ["lengths"] if hasattr(normaliser, "prepare") else [],
        "PROVIDES": ["factors by offset"] if hasattr(normaliser, "factors") else [],
    }


def learn_block(block: Any) -> dict[str, Any]:
    """Find whether a block puts its parts together as the block `attention` does, and whether it mixes tokens by its attention alone."""
    parts: dict[str, Any] = dict.fromkeys(("residual", "mlp_residual"), partial(add, depth=SIZES.depth))
    parts |= {"norm1": Layer(SIZES), "norm2": Layer(SIZES), "mlp": Gelu(SIZES), "placement": "pre", "site": "blocks.0"}
    attention = Multihead(SIZES, Position(), softmax, Mask(no_mask), "blocks.0")
    made = bind_named(block, sizes=SIZES, new_norm=partial(Layer, SIZES))(attention=attention, **parts)
    x = fill(made).normal_(generator=torch.Generator().manual_seed(1))
    x = made.widen(x) if hasattr(made, "widen") else x
    earlier: dict[str, Any] = {"earlier": {}} if asks(made) else {}
    breaks, _ = find_breaks(made, x, lambda state: made(state, no_dropout, **earlier))
    made.attention = NoAttention()
    with torch.no_grad():
        other = x.clone()
        other[:, :, 0] += 1
        one, two = (made(state, no_dropout, **earlier)[:, :, 1:] for state in (x, other))
    return {"BREAKS": list(breaks) or (["blocks"] if asks(made) else []), "TOKENWISE": torch.equal(one, two)}


def learn_residual(residual: Any) -> dict[str, Any]:
    """Find whether a residual reads what earlier layers made."""
    return {"BREAKS": ["blocks"] if asks(residual(SIZES)) else []}


def learn_sentinels(sentinels: Any) -> dict[str, Any]:
    """Count the tokens that are added."""
    made = sentinels(SIZES)
    if made is None:
        return {"COUNT": 0}
    x = fill(made)
    with torch.no_grad():
        return {"COUNT": made.add(x).shape[2] - x.shape[2]}


class NoAttention(nn.Module):
    def forward(self, x: Tensor, *drop: Any) -> Tensor:
        return torch.zeros_like(x)


class NotedPosition(Position):
    def __init__(self, called: set[str]) -> None:
        super().__init__()
        self.called = called

    def rotate(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        self.called.add("rotate")
        return super().rotate(q, k)

    def products(self, q: Tensor, k: Tensor) -> Tensor:
        self.called.add("products")
        return super().products(q, k)

    def bias(self, logits: Tensor) -> Tensor:
        self.called.add("bias")
        return super().bias(logits)

    def context(self, weights: Tensor, values: Tensor) -> Tensor:
        self.called.add("context")
        return super().context(weights, values)


class NotedNormaliser:
    def __init__(self, called: set[str]) -> None:
        self.called = called

    def prepare(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        self.called |= {"prepare", "normaliser"}
        return q, k

    def __call__(self, logits: Tensor) -> Tensor:
        self.called.add("normaliser")
        return logits.softmax(-1)


class NotedMask:
    def __init__(self, called: set[str]) -> None:
        self.called = called

    def __call__(self, length: int, device: torch.device) -> Tensor | None:
        self.called.add("mask")
        return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def fill(made: Any) -> Tensor:
    """Give a module random parameters in float64, and return states (K, B, T, D) of zeros for it."""
    if isinstance(made, nn.Module):
        made.double()
        source = torch.Generator().manual_seed(0)
        for value in made.parameters():
            value.data.normal_(0.0, 0.3, generator=source)
    return torch.zeros(MEMBERS, SAMPLES, TOKENS, SIZES.width, dtype=torch.float64)


def overrides(made: Any, method: str) -> bool:
    own = getattr(type(made), method, None)
    return own is not None and own is not getattr(Position, method)


def runs_at(position: Any, place: str, length: int) -> bool:
    """Return whether a position acts on a sequence of this length without raising."""
    head = torch.zeros(MEMBERS, SAMPLES, SIZES.heads, length, SIZES.head_width, dtype=torch.float64)
    square = torch.zeros(MEMBERS, SAMPLES, SIZES.heads, length, length, dtype=torch.float64)
    state = torch.zeros(MEMBERS, SAMPLES, length, SIZES.width, dtype=torch.float64)
    inputs = {"states": (state,), "queries": (head, head), "products": (head, head), "scores": (square,)}
    try:
        with torch.no_grad():
            getattr(position, HOOKS[place])(*inputs.get(place, (square, head)))
    except Exception:  # whatever a length beyond its tables raises
        return False
    return True


def adds_by_offset(position: Any) -> bool:
    """Return whether a position adds to scores (K, B, H, T, T) numbers that are the same along each diagonal, whatever the scores."""
    shape = (MEMBERS, SAMPLES, SIZES.heads, TOKENS, TOKENS)
    scores = torch.zeros(shape, dtype=torch.float64).normal_(generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        added, again = position.bias(torch.zeros_like(scores)), position.bias(scores) - scores
    return torch.allclose(added[..., 1:, 1:], added[..., :-1, :-1]) and torch.allclose(added, again, atol=1e-12)


LEARN: dict[str, Callable[[Any], dict[str, Any]]] = {
    "task": learn_task,
    "attention": learn_attention,
    "position": learn_position,
    "normaliser": learn_normaliser,
    "sentinels": learn_sentinels,
    "block": learn_block,
    "residual": learn_residual,
}


def local_files() -> list[str]:
    """Return the source files of imported modules that are neither installed nor Python's nor this package's, and this file."""
    paths = sysconfig.get_paths()
    outside = [Path(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    outside.append(Path(components.__file__).parent)
    files = {str(getattr(module, "__file__", None) or "") for module in list(sys.modules.values())}
    own = [
        file for file in files if file.endswith(".py") and not any(Path(file).is_relative_to(one) for one in outside)
    ]
    return [*sorted(own), __file__]


def main(kind: str, name: str, out: str) -> None:
    facts: dict[str, Any] = {}
    reason = ""
    try:
        facts = LEARN[kind](components.load(kind, name))
    except Exception as error:  # whatever somebody's file may raise; its trial says more
        reason = describe_error(error)
    Path(out).write_text(json.dumps({"facts": facts, "reason": reason, "files": local_files()}))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Call a component at small sizes to learn facts that its file does not declare, and to check those that it declares."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from inspect import isclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankfall.nets.attentions.multihead import Multihead
from rankfall.nets.blocks.attention import Attention
from rankfall.nets.masks._mask import Mask
from rankfall.nets.masks.none import none as no_mask
from rankfall.nets.mlps.gelu import Gelu
from rankfall.nets.network import bind_named
from rankfall.nets.normalisers.softmax import softmax
from rankfall.nets.norms.layer import Layer
from rankfall.nets.positions._base import HOOKS, Position
from rankfall.nets.primitives import Sizes, asks, bind_earlier, no_dropout
from rankfall.nets.residuals.add import add
from rankfall.nets.residuals.scaled import scaled
from rankfall.tasks._dataset import Dataset
from rankfall.trial.candidate import Surroundings
from rankfall.trial.maps import AGREE, difference

MEMBERS, SAMPLES, TOKENS = 2, 2, Surroundings().tokens
LAYERS = (1, 2)  # all layers of a network of depth 2: a component may act differently in each
SIZES = Surroundings().sizes(MEMBERS)
Options = Mapping[str, Any]
BLOCK_PARTS = ("attention", "mlp", "residual", "mlp_residual", "norm1", "norm2", "placement")
# part that an attention provides -> its methods
METHODS = {"weights": ("weights",), "heads": ("heads", "contexts", "emit"), "values": ("value", "output", "maps")}
# values of PROVIDES that a call can show
JUDGED = {"attention": {*METHODS}, "position": {"bias by offset"}, "normaliser": {"factors by offset"}}
LONGER = (11, 64)  # tokens: lengths beyond the length for which a component is built
OFFERED = {"rotate": "queries", "products": "products", "bias": "scores", "context": "values", "prepare": "lengths"}


def learn_task(task: Any, options: Options) -> dict[str, Any]:
    """Learn the kinds of inputs and targets from a draw: integers are tokens or classes, other numbers are vectors or values."""
    bound: Any = task(**options) if isclass(task) else partial(task, **options)
    data = bound(np.random.default_rng(0))
    if not isinstance(data, Dataset):
        raise TypeError(f"it returns {type(data).__name__} where a Dataset is expected; a `return` may be missing")
    inputs, targets = data.train.inputs, data.train.targets
    if data.special > 0 and inputs.shape == targets.shape and torch.equal(inputs, targets):
        hint = "say TARGETS = 'hidden' if the objective hides them, else 'classes'"
        raise ValueError(f"its targets are its inputs: {hint}")
    kind = "values" if targets.is_floating_point() else "classes"
    return {"INPUTS": "vectors" if inputs.is_floating_point() else "tokens", "TARGETS": kind}


def learn_attention(attention: Any, options: Options) -> dict[str, Any]:
    """Learn which of its position, normaliser and mask an attention calls, which sizes it reads, and which parts it has, in two layers."""
    called: set[str] = set()
    provided = set(METHODS)
    for layer in LAYERS:
        net = note_calls(attention, layer, called, options)
        provided -= {name for name in provided if not all(hasattr(net, part) for part in METHODS[name])}
        provided -= wrong_parts(net, provided)
    return {
        "PROVIDES": sorted(provided),
        "OFFERS": [offered for method, offered in OFFERED.items() if method in called],
        "IGNORES": [name for name in ("normaliser", "mask", "heads", "head_width") if name not in called],
        "BREAKS": ["blocks"] if asks(net) else [],
    }


def note_calls(attention: Any, layer: int, called: set[str], options: Options) -> Any:
    """Build an attention whose sizes and parts add the names that it reads or calls to `called`. Call it once and return it."""

    def noting(method: Callable[..., Any], *names: str) -> Callable[..., Any]:
        def noted(*args: Any) -> Any:
            called.update(names)
            return method(*args)

        return noted

    class NotedSizes(Sizes):
        def __getattribute__(self, name: str) -> Any:
            called.add(name)
            return super().__getattribute__(name)

    methods = {name: noting(getattr(Position, name), name) for name in OFFERED if hasattr(Position, name)}
    noted_position = type("NotedPosition", (Position,), methods)

    class NotedNormaliser:
        prepare = staticmethod(noting(lambda q, k: (q, k), "prepare", "normaliser"))
        __call__ = noting(lambda self, logits: logits.softmax(-1), "normaliser")

    def lower_triangle(length: int, device: torch.device) -> Tensor:
        return torch.ones(length, length, dtype=torch.bool, device=device).tril()

    sizes: Sizes = NotedSizes(**{**vars(SIZES), "layer": layer})
    if hasattr(attention, "sized"):
        sizes = attention.sized(sizes, **options)
    net = attention(sizes, noted_position(), NotedNormaliser(), noting(lower_triangle, "mask"), "blocks.0", **options)
    x = random_states(net)
    with torch.no_grad():
        bind_earlier(net, {})(x, no_dropout)
        if hasattr(net, "weights"):
            net.weights(x)
    return net


def fill(module: Any) -> Tensor:
    """Fill a module's parameters with random numbers in float64, and return states (K, B, T, D) of zeros for it."""
    if isinstance(module, nn.Module):
        module.double()
        source = torch.Generator().manual_seed(0)
        for value in module.parameters():
            value.data.normal_(0.0, 0.3, generator=source)
    return torch.zeros(MEMBERS, SAMPLES, TOKENS, SIZES.width, dtype=torch.float64)


def random_states(module: Any) -> Tensor:
    """Fill a module's parameters with random numbers, and return normal states (K, B, T, D) for it."""
    return fill(module).normal_(generator=torch.Generator().manual_seed(1))


def wrong_parts(net: Any, provided: set[str]) -> set[str]:
    """Return the provided parts that do not give the output of an attention: weights that differ from those passed to dropout, heads that
    do not sum to the output, or value maps that omit a gate."""
    if "weights" not in provided:
        return {"heads", "values"}
    x, wrong, dropped = random_states(net), set(), list[Tensor]()

    def drop(value: Tensor, site: str) -> Tensor:
        dropped.append(value)
        return value

    with torch.no_grad():
        weights, output = net.weights(x), bind_earlier(net, {})(x, drop)
        others = [value for value in dropped if value.shape == weights.shape and not torch.allclose(value, weights)]
        if weights.dim() != 5 or others:  # (K, B, H, T, T)
            return {*METHODS}
        if "heads" in provided:
            contexts = net.contexts(weights, x)
            heads = [net.emit(contexts[:, :, h], h) for h in range(contexts.shape[2])]
            bias = net.emit(torch.zeros_like(contexts[:, :, 0]), 0)  # which each head has in full
            if not torch.allclose(sum(heads) - (len(heads) - 1) * bias, output):
                wrong.add("heads")
        if "values" in provided:
            maps, head_bias, bias = net.maps()  # (K, H, D, D), (K, H, D), (K, D)
            values = x.unsqueeze(2) @ maps.unsqueeze(1) + head_bias[:, None, :, None]  # (K, B, H, T, D)
            if not torch.allclose((weights @ values).sum(2) + bias[:, None, None], output):
                wrong.add("values")
    return wrong


def learn_position(position: Any, options: Options) -> dict[str, Any]:
    """Learn where a position acts, whether it runs at other lengths, and whether its addition to scores depends on offsets alone."""
    module = position(SIZES, **options)
    fill(module)
    methods = {point: getattr(type(module), method, None) for point, method in HOOKS.items()}
    touches = [point for point, method in HOOKS.items() if methods[point] not in (None, getattr(Position, method))]
    return {
        "TOUCHES": touches,
        "ADMITS": "any" if all(runs_at(module, point, length) for point in touches for length in LONGER) else "trained",
        "PROVIDES": ["bias by offset"] if "scores" in touches and adds_by_offset(module) else [],
        "BREAKS": ["values"] if "values" in touches else [],  # no value map contains its addition
    }


def learn_block(block: Any, options: Options) -> dict[str, Any]:
    """Learn whether a block puts its parts together as the block `attention` does, and whether only its attention mixes tokens."""
    breaks: set[str] = set()
    tokenwise = True
    for layer in LAYERS:
        for residual in (partial(add, depth=SIZES.depth), partial(scaled, depth=SIZES.depth, scale=3.0)):
            module = build_block(block, replace(SIZES, layer=layer), residual, options)
            x = random_states(module)
            x = module.widen(x) if hasattr(module, "widen") else x

            def call(state: Tensor, module: Any = module) -> Any:
                return bind_earlier(module, {})(state, no_dropout)

            breaks |= {*find_breaks(module, x, call), *(["blocks"] if asks(module) else [])}
            module.attention.forward = lambda state, *drop: torch.zeros_like(state)
            tokenwise = tokenwise and acts_on_tokens_alone(call, x)
    ordered = [name for name in ("blocks", *METHODS) if name in breaks]
    return {"BREAKS": ordered, "TOKENWISE": tokenwise}


def build_block(
    block: Any, sizes: Sizes, residual: Any, options: Options, placement: str = "pre", mlp: bool = True
) -> Any:
    """Build a block around an ordinary attention."""
    return bind_named(block, sizes=sizes, new_norm=partial(Layer, sizes))(
        attention=Multihead(sizes, Position(), softmax, Mask(no_mask), "blocks.0"),
        mlp=Gelu(sizes) if mlp else None,
        residual=residual,
        mlp_residual=residual,
        norm1=Layer(sizes),
        norm2=Layer(sizes) if mlp else None,
        placement=placement,
        site="blocks.0",
        **options,
    )


def find_breaks(module: Any, x: Tensor, call: Callable[[Tensor], Any]) -> tuple[str, ...]:
    """Return the names that belong into BREAKS of a block. `x` is its input (K, B, T, D) or wider, `call` the block itself."""
    calls: list[Any] = []
    hook = module.attention.register_forward_pre_hook(lambda *inputs: calls.append(inputs))
    with torch.no_grad():
        try:
            result = call(x.clone())
        finally:
            hook.remove()
        if len(calls) != 1 or hasattr(module, "widen"):  # a state that is wider than vectors
            return ("blocks", *METHODS)
        usual = Attention(**{name: getattr(module, name) for name in BLOCK_PARTS}, site="blocks.0")(x.clone())
    return () if result.shape == usual.shape and difference([result], [usual]) <= AGREE else ("blocks",)


def acts_on_tokens_alone(call: Callable[[Tensor], Tensor], x: Tensor) -> bool:
    """Return whether a change of one token's state (K, B, T, ...) leaves the results of all others as they are."""
    with torch.no_grad():
        before = call(x)
        for token in range(TOKENS):
            other = x.clone()
            other[:, :, token] += 1
            changed = (call(other) != before).flatten(3).any(-1).any(0).any(0)  # (T,)
            changed[token] = False
            if changed.any():
                return False
    return True


def learn_sentinels(sentinels: Any, options: Options) -> dict[str, Any]:
    """Learn how many tokens sentinels add."""
    module = sentinels(SIZES, **options)
    if module is None:
        return {"COUNT": 0}
    x = fill(module)
    with torch.no_grad():
        return {"COUNT": module.add(x).shape[2] - x.shape[2]}


def runs_at(position: Any, point: str, length: int) -> bool:
    """Return whether a position acts on a sequence of this length without raising."""
    head = torch.zeros(MEMBERS, SAMPLES, SIZES.heads, length, SIZES.head_width, dtype=torch.float64)
    square = torch.zeros(MEMBERS, SAMPLES, SIZES.heads, length, length, dtype=torch.float64)
    state = torch.zeros(MEMBERS, SAMPLES, length, SIZES.width, dtype=torch.float64)
    inputs = {"states": (state,), "queries": (head, head), "products": (head, head), "scores": (square,)}
    try:
        with torch.no_grad():
            getattr(position, HOOKS[point])(*inputs.get(point, (square, head)))
    except Exception:  # whatever a length beyond its tables raises
        return False
    return True


def adds_by_offset(position: Any) -> bool:
    """Return whether a position adds finite numbers to scores (K, B, H, T, T), the same along each diagonal and for all scores."""
    for length in (TOKENS, *LONGER):
        scores = torch.zeros(MEMBERS, SAMPLES, SIZES.heads, length, length, dtype=torch.float64)
        scores.normal_(generator=torch.Generator().manual_seed(2))
        try:
            with torch.no_grad():
                added, again = position.bias(torch.zeros_like(scores)), position.bias(scores) - scores
        except Exception:  # a length beyond its tables
            continue
        same = torch.equal(added[..., 1:, 1:], added[..., :-1, :-1]) and torch.allclose(added, again, atol=1e-12)
        if not (same and bool(added.isfinite().all())):
            return False
    return True


LEARN: dict[str, Callable[[Any, Options], dict[str, Any]]] = {
    "task": learn_task,
    "attention": learn_attention,
    "position": learn_position,
    "normaliser": lambda normaliser, options: {
        "TOUCHES": ["lengths"] if hasattr(normaliser, "prepare") else [],
        "PROVIDES": ["factors by offset"] if hasattr(normaliser, "factors") else [],
    },
    "sentinels": learn_sentinels,
    "block": learn_block,
    "residual": lambda residual, options: {"BREAKS": ["blocks"] if asks(residual(SIZES, **options)) else []},
}

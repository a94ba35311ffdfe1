"""Try each kind of `nets/` as a network calls it. All parts around it are the package's, so that a failure is the component's."""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import isclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankfall.design import Architecture, field_declarations
from rankfall.nets.masks._mask import Mask
from rankfall.nets.masks.causal import causal
from rankfall.nets.masks.none import none as unmasked
from rankfall.nets.network import bind_named
from rankfall.nets.normalisers.softmax import softmax
from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Sizes, asks, no_dropout
from rankfall.nets.residuals.add import add
from rankfall.random_streams import stream
from rankfall.trial.candidate import DEPTH, MEMBERS, SAMPLES, Candidate, Surroundings
from rankfall.trial.learn import BLOCK_PARTS, build_block
from rankfall.trial.maps import Make, Use, try_maps

ROLES = ("query", "key", "value", "output", "mlp", "embedding", "embedding_map", "position", "head")


def normal_numbers(name: str, *shape: int) -> Tensor:
    """Return normal numbers (K, B, *shape) in float64."""
    return torch.from_numpy(stream(0, "trial", name).normal(size=(MEMBERS, SAMPLES, *shape)))


def use_of(
    label: str, inputs: Mapping[str, tuple[int, ...]], *outputs: tuple[int, ...], method: str = "", **more: Any
) -> Use:
    """Return a call with normal numbers: the name of each input with its shape after (K, B), and the shape of each output."""
    return Use(label, tuple(normal_numbers(name, *shape) for name, shape in inputs.items()), outputs, method, **more)


def maker_of(candidate: Candidate) -> Make:
    """Return the function by which a network makes the component. Classes, and all components of a `sized` kind, take the sizes."""
    sized, is_class = field_declarations(Architecture)[candidate.kind]["sized"], isclass(candidate.loaded)

    def make(sizes: Sizes) -> Any:
        if not (sized or is_class):
            return candidate.bind_options()
        module = candidate.call(candidate.loaded, "made of sizes and its options", sizes, **candidate.component.options)
        return require_module(candidate, module) if is_class else module

    return make


def require_module(candidate: Candidate, module: Any) -> nn.Module:
    """Return an instance; raise `Refused` unless it is a module, since torch finds the parameters of modules only."""
    if not isinstance(module, nn.Module):
        raise candidate.refusal("is a class, but no torch.nn.Module", "derive it from torch.nn.Module")
    return module


def first_of_pass(module: nn.Module) -> nn.Module:
    """Bind `earlier` for the first layer if the module reads results of earlier layers, and return the module."""
    if asks(module):
        forward = module.forward
        module.forward = lambda *inputs, **named: forward(*inputs, **named, earlier={})  # type: ignore[method-assign]
    return module


def as_map(use: Callable[[Surroundings], Use]) -> Callable[[Candidate, Surroundings], None]:
    """Return the trial of a kind that is a single map; a component that returns None as its map passes."""

    def attempt(candidate: Candidate, setting: Surroundings) -> None:
        make = maker_of(candidate)
        if make(setting.sizes(1)) is not None:
            try_maps(candidate, make, [use(setting)], setting)

    return attempt


def on_states(setting: Surroundings, **also: Any) -> Use:
    """Return the use of a map of states (K, B, T, D) to states; `also` holds keyword arguments."""
    shape = (setting.length, setting.width)
    return use_of("states", {"states": shape}, shape, also=also)


def as_embedding(setting: Surroundings) -> Use:
    """Return the use of a map of symbols (K, B, T) or vectors (K, B, T, C) to states (K, B, T, D)."""
    inputs = normal_numbers("vectors", setting.tokens, setting.size_in)
    if setting.inputs == "tokens":
        symbols = stream(0, "trial", "symbols").integers(setting.size_in, size=(MEMBERS, SAMPLES, setting.tokens))
        inputs = torch.from_numpy(symbols)
    return Use(setting.inputs, (inputs,), ((setting.tokens, setting.width),), through=(False,))


def as_head(setting: Surroundings) -> Use:
    """Return the use of a map of states (K, B, T, D) to answers (K, B, T, C)."""
    return use_of("states", {"states": (setting.tokens, setting.width)}, (setting.tokens, setting.size_out))


def normaliser(candidate: Candidate, setting: Surroundings) -> None:
    """Try a normaliser on samples with different masks: earlier tokens, or each token alone."""
    length, heads = setting.length, (setting.heads, setting.length, setting.head_width)
    scores, label = 2 * normal_numbers("scores", setting.heads, length, length), "scores"
    if setting.masked:
        causal_rows = torch.ones(length, length, dtype=torch.bool).tril()
        seen = torch.stack([causal_rows, torch.eye(length).bool(), causal_rows]).unsqueeze(1)  # (B, 1, T, T)
        scores, label = scores.masked_fill(~seen, -torch.inf), "scores with -inf where masked"
    uses = [Use(label, (scores,), ((setting.heads, length, length),))]
    if hasattr(candidate.loaded, "prepare"):
        uses.append(use_of("queries and keys", {"queries": heads, "keys": heads}, heads, heads, method="prepare"))
    weights = try_maps(candidate, maker_of(candidate), uses, setting)[0][0]
    leaked = weights[scores.isneginf()]
    if leaked.any():
        fault = f"gives a masked token the weight {leaked[leaked != 0][0].item():.2g}"
        raise candidate.refusal(fault, "where a score is -inf the weight must be 0")


def position(candidate: Candidate, setting: Surroundings) -> None:
    """Try the methods that a position overrides, or the first if it overrides none."""
    heads, state = (setting.heads, setting.length, setting.head_width), (setting.length, setting.width)
    square = (setting.heads, setting.length, setting.length)
    pair, weights = {"queries": heads, "keys": heads}, normal_numbers("scores", *square).softmax(-1)
    uses = [
        use_of("states", {"states": state}, state, method="embed"),
        use_of("queries and keys", pair, heads, heads, method="rotate"),
        use_of("queries and keys", pair, square, method="products"),
        use_of("scores", {"scores": square}, square, method="bias", may_mask=True),
        Use("weights and values", (weights, normal_numbers("values", *heads)), (heads,), "context"),
    ]
    make = maker_of(candidate)
    instance = make(setting.sizes(1))
    if isinstance(instance, Position):
        overridden = [use for use in uses if getattr(type(instance), use.method) is not getattr(Position, use.method)]
        uses = overridden or uses[:1]
    try_maps(candidate, make, uses, setting)


def sentinels(candidate: Candidate, setting: Surroundings) -> None:
    """Try `add` and `strip` of sentinels."""
    make, count = maker_of(candidate), candidate.facts.get("COUNT")
    if type(count) is not int or count < 0:
        raise candidate.refusal("does not say how many tokens it adds", "write COUNT = 1 at the top of its file")
    if make(setting.sizes(1)) is None:
        if count:
            raise candidate.refusal(f"says COUNT = {count} and makes nothing", "return a module, or write COUNT = 0")
        return
    inner, outer = (setting.tokens, setting.width), (setting.tokens + count, setting.width)
    uses = [
        use_of("states", {"states": inner}, outer, method="add"),
        use_of("states with sentinels", {"longer": outer}, inner, method="strip"),
    ]
    try_maps(candidate, make, uses, setting)


def residual(candidate: Candidate, setting: Surroundings) -> None:
    """Try a residual on a stream and a branch (K, B, T, D)."""
    state = (setting.length, setting.width)
    use = use_of("a stream and a branch", {"states": state, "branch": state}, state, through=(False, True))

    def make(sizes: Sizes) -> Any:
        module = maker_of(candidate)(sizes)
        return first_of_pass(module) if isinstance(module, nn.Module) else bind_named(module, depth=DEPTH, layer=1)

    try_maps(candidate, make, [use], setting)


def mask(candidate: Candidate, setting: Surroundings) -> None:
    """Try a mask: booleans (T, T), the same twice, with a visible token in each row."""
    function, length = candidate.bind_options(), setting.length
    first, again = (candidate.call(function, f"given the length {length}", length) for _ in range(2))
    if first is None and again is None:
        return
    if first.shape != (length, length) or first.dtype != torch.bool:
        fault = f"returns {tuple(first.shape)} of {first.dtype}, given the length {length}"
        raise candidate.refusal(fault, f"it must be {candidate.contract}")
    if not torch.equal(first, again):
        raise candidate.refusal("gives another result when called again", "let it depend on its arguments alone")
    empty_rows = (~first.any(1)).nonzero().flatten().tolist()
    if empty_rows:
        fault = f"leaves token {empty_rows[0]} of {length} nothing to see"
        raise candidate.refusal(fault, "every row needs an entry that is true: no weights sum to one over nothing")


def init(candidate: Candidate, setting: Surroundings) -> None:
    """Try initial values of weights and biases of every role."""
    function = bind_named(candidate.bind_options(), depth=DEPTH)
    for role, kind in [(role, kind) for role in ROLES for kind in ("weight", "bias")]:
        shape, when = (6, 5) if kind == "weight" else (1, 5), f"for a {kind} of role {role!r}"
        first, again = (
            candidate.call(function, when, stream(0, "trial", role), role, kind, shape, 6) for _ in range(2)
        )
        if first.shape != shape or not np.isfinite(first).all():
            raise candidate.refusal(f"returns {first.shape} {when}", f"it must be finite numbers {shape}")
        if not np.array_equal(first, again):
            fault = "draws other numbers when called again with the same generator"
            raise candidate.refusal(fault, "draw from the `rng` that it is given, and keep nothing between calls")


def attention(candidate: Candidate, setting: Surroundings) -> None:
    """Try an attention on states (K, B, T, D), with the mask that it requires."""
    needed = [required["mask"] for required, _ in candidate.facts.get("REQUIRES", ()) if "mask" in required]

    def make(sizes: Sizes) -> Any:
        mask = Mask(causal if setting.masked or needed == ["causal"] else unmasked)
        parts = sizes, Position(), softmax, mask, "blocks.0"
        when = "made of sizes, position, normaliser, mask, site and its options"
        module = require_module(
            candidate, candidate.call(candidate.loaded, when, *parts, **candidate.component.options)
        )
        return first_of_pass(module)

    try_maps(candidate, make, [on_states(setting, drop=no_dropout)], setting)


def block(candidate: Candidate, setting: Surroundings) -> None:
    """Try a block on its input: states (K, B, T, D), or the wider states of a block with `widen`."""

    def make(sizes: Sizes) -> Any:
        when, residual = "made of its parts and options", partial(add, depth=DEPTH)
        parts = candidate.loaded, sizes, residual, candidate.component.options, setting.placement, setting.mlp
        module = require_module(candidate, candidate.call(build_block, when, *parts))
        lacking = [name for name in BLOCK_PARTS if not hasattr(module, name)]
        if lacking:
            raise candidate.refusal(f"has no attribute {lacking[0]}", "keep it: measures take networks apart by it")
        return first_of_pass(module)

    use, instance = on_states(setting, drop=no_dropout), make(setting.sizes(MEMBERS))
    if hasattr(instance, "widen"):
        x = candidate.call(instance.widen, "given states", *use.inputs).detach()
        candidate.call(instance.narrow, "given states as they leave the last block", x)
        use = Use("states", (x,), (tuple(x.shape[2:]),), also=use.also)
    try_maps(candidate, make, [use], setting)

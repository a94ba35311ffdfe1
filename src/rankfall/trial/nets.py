"""Try each kind of `nets/` as a network calls it. Parts around it are those of the package, so that what fails is its own."""

from collections.abc import Callable
from functools import partial
from inspect import isclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankfall.design import Architecture, field_declarations
from rankfall.nets.dropout import no_dropout
from rankfall.nets.earlier import asks
from rankfall.nets.masks._mask import Mask
from rankfall.nets.masks.causal import causal
from rankfall.nets.masks.none import none as unmasked
from rankfall.nets.network import bind_named
from rankfall.nets.normalisers.softmax import softmax
from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Sizes
from rankfall.nets.residuals.add import add
from rankfall.random_streams import stream
from rankfall.trial.candidate import Candidate
from rankfall.trial.learn import BLOCK_PARTS, build_block
from rankfall.trial.maps import Make, Use, try_maps
from rankfall.trial.setting import DEPTH, MEMBERS, SAMPLES, Surroundings

ROLES = ("query", "key", "value", "output", "mlp", "embedding", "embedding_map", "position", "head")


def normal_numbers(name: str, *shape: int) -> Tensor:
    """Return normal numbers (K, B, *shape) in float64."""
    return torch.from_numpy(stream(0, "trial", name).normal(size=(MEMBERS, SAMPLES, *shape)))


def maker_of(candidate: Candidate) -> Make:
    """Return how a network makes the component. A class, or any component of a kind that is `sized`, is given the sizes."""
    sized, is_class = field_declarations(Architecture)[candidate.kind]["sized"], isclass(candidate.found)

    def make(sizes: Sizes) -> Any:
        if not (sized or is_class):
            return candidate.bind_options()
        made = candidate.call(candidate.found, "made of sizes and its options", sizes, **candidate.component.options)
        return require_module(candidate, made) if is_class else made

    return make


def require_module(candidate: Candidate, made: Any) -> nn.Module:
    """Raise `Refused` if an instance is no module, since torch would not find its parameters."""
    if not isinstance(made, nn.Module):
        raise candidate.refusal("is a class, but no torch.nn.Module", "derive it from torch.nn.Module")
    return made


def first_of_pass(made: nn.Module) -> nn.Module:
    """Return a part that reads what earlier layers made as the first of a pass, and any other as it is."""
    if asks(made):
        forward = made.forward
        made.forward = lambda *inputs, **named: forward(*inputs, **named, earlier={})  # type: ignore[method-assign]
    return made


def as_map(use: Callable[[Surroundings], Use]) -> Callable[[Candidate, Surroundings], None]:
    """Return the trial of a kind that is one map, unless it makes nothing."""

    def attempt(candidate: Candidate, setting: Surroundings) -> None:
        make = maker_of(candidate)
        if make(setting.sizes(1)) is not None:
            try_maps(candidate, make, [use(setting)], setting)

    return attempt


def on_states(setting: Surroundings, **also: Any) -> Use:
    """Return the use of a map of states (K, B, T, D)."""
    shape = (setting.length, setting.width)
    return Use("states", (normal_numbers("states", *shape),), (shape,), also=also)


def as_embedding(setting: Surroundings) -> Use:
    """Return the use of a map of symbols (K, B, T) or vectors (K, B, T, C) to states (K, B, T, D)."""
    inputs = normal_numbers("vectors", setting.tokens, setting.size_in)
    if setting.inputs == "tokens":
        drawn = stream(0, "trial", "symbols").integers(setting.size_in, size=(MEMBERS, SAMPLES, setting.tokens))
        inputs = torch.from_numpy(drawn)
    return Use(setting.inputs, (inputs,), ((setting.tokens, setting.width),), through=(False,))


def as_head(setting: Surroundings) -> Use:
    """Return the use of a map of states (K, B, T, D) to answers (K, B, T, C)."""
    states = normal_numbers("states", setting.tokens, setting.width)
    return Use("states", (states,), ((setting.tokens, setting.size_out),))


def normaliser(candidate: Candidate, setting: Surroundings) -> None:
    """Try it with each sample seeing another part of the tokens: what came before, or a token itself alone."""
    length, heads = setting.length, (setting.heads, setting.length, setting.head_width)
    scores, told = 2 * normal_numbers("scores", setting.heads, length, length), "scores"
    if setting.masked:
        before, alone = torch.ones(length, length, dtype=torch.bool).tril(), torch.eye(length, dtype=torch.bool)
        seen = torch.stack([before, alone, before]).unsqueeze(1)  # (B, 1, T, T)
        scores, told = scores.masked_fill(~seen, -torch.inf), "scores with -inf where masked"
    uses = [Use(told, (scores,), ((setting.heads, length, length),))]
    if hasattr(candidate.found, "prepare"):
        pair = normal_numbers("queries", *heads), normal_numbers("keys", *heads)
        uses.append(Use("queries and keys", pair, (heads, heads), "prepare"))
    weights = try_maps(candidate, maker_of(candidate), uses, setting)[0][0]
    leaked = weights[scores.isneginf()]
    if leaked.any():
        what = f"gives a masked token the weight {leaked[leaked != 0][0].item():.2g}"
        raise candidate.refusal(what, "where a score is -inf the weight must be 0")


def position(candidate: Candidate, setting: Surroundings) -> None:
    """Try the methods that it does not inherit, or one if it inherits all."""
    heads, state = (setting.heads, setting.length, setting.head_width), (setting.length, setting.width)
    square = (setting.heads, setting.length, setting.length)
    pair, scores = (
        (normal_numbers("queries", *heads), normal_numbers("keys", *heads)),
        normal_numbers("scores", *square),
    )
    uses = [
        Use("states", (normal_numbers("states", *state),), (state,), "embed"),
        Use("queries and keys", pair, (heads, heads), "rotate"),
        Use("queries and keys", pair, (square,), "products"),
        Use("scores", (scores,), (square,), "bias", may_mask=True),
        Use("weights and values", (scores.softmax(-1), normal_numbers("values", *heads)), (heads,), "context"),
    ]
    make = maker_of(candidate)
    one = make(setting.sizes(1))
    if isinstance(one, Position):
        own = [use for use in uses if getattr(type(one), use.method) is not getattr(Position, use.method)]
        uses = own or uses[:1]
    try_maps(candidate, make, uses, setting)


def sentinels(candidate: Candidate, setting: Surroundings) -> None:
    make, count = maker_of(candidate), candidate.facts.get("COUNT")
    if type(count) is not int or count < 0:
        raise candidate.refusal("does not say how many tokens it adds", "write COUNT = 1 at the top of its file")
    if make(setting.sizes(1)) is None:
        if count:
            raise candidate.refusal(f"says COUNT = {count} and makes nothing", "return a module, or write COUNT = 0")
        return
    inner, outer = (setting.tokens, setting.width), (setting.tokens + count, setting.width)
    uses = [
        Use("states", (normal_numbers("states", *inner),), (outer,), "add"),
        Use("states with sentinels", (normal_numbers("longer", *outer),), (inner,), "strip"),
    ]
    try_maps(candidate, make, uses, setting)


def residual(candidate: Candidate, setting: Surroundings) -> None:
    state = (setting.length, setting.width)
    pair = normal_numbers("states", *state), normal_numbers("branch", *state)
    use = Use("a stream and a branch", pair, (state,), through=(False, True))

    def make(sizes: Sizes) -> Any:
        one = maker_of(candidate)(sizes)
        return first_of_pass(one) if isinstance(one, nn.Module) else bind_named(one, depth=DEPTH, layer=1)

    try_maps(candidate, make, [use], setting)


def mask(candidate: Candidate, setting: Surroundings) -> None:
    function, length = candidate.bind_options(), setting.length
    first, again = (candidate.call(function, f"given the length {length}", length) for _ in range(2))
    if first is None and again is None:
        return
    if first.shape != (length, length) or first.dtype != torch.bool:
        what = f"returns {tuple(first.shape)} of {first.dtype}, given the length {length}"
        raise candidate.refusal(what, f"it must be {candidate.contract}")
    if not torch.equal(first, again):
        raise candidate.refusal("gives another result when called again", "let it depend on its arguments alone")
    blind = (~first.any(1)).nonzero().flatten().tolist()
    if blind:
        what = f"leaves token {blind[0]} of {length} nothing to see"
        raise candidate.refusal(what, "every row needs an entry that is true: no weights sum to one over nothing")


def init(candidate: Candidate, setting: Surroundings) -> None:
    function = bind_named(candidate.bind_options(), depth=DEPTH)
    for role, kind in [(role, kind) for role in ROLES for kind in ("weight", "bias")]:
        shape, told = (6, 5) if kind == "weight" else (1, 5), f"for a {kind} of role {role!r}"
        first, again = (
            candidate.call(function, told, stream(0, "trial", role), role, kind, shape, 6) for _ in range(2)
        )
        if first.shape != shape or not np.isfinite(first).all():
            raise candidate.refusal(f"returns {first.shape} {told}", f"it must be finite numbers {shape}")
        if not np.array_equal(first, again):
            what = "draws other numbers when called again with the same generator"
            raise candidate.refusal(what, "draw from the `rng` that it is given, and keep nothing between calls")


def attention(candidate: Candidate, setting: Surroundings) -> None:
    needed = [wanted["mask"] for wanted, _ in candidate.facts.get("REQUIRES", ()) if "mask" in wanted]

    def make(sizes: Sizes) -> Any:
        mask = Mask(causal if setting.masked or needed == ["causal"] else unmasked)
        parts = sizes, Position(), softmax, mask, "blocks.0"
        told = "made of sizes, position, normaliser, mask, site and its options"
        one = require_module(candidate, candidate.call(candidate.found, told, *parts, **candidate.component.options))
        return first_of_pass(one)

    try_maps(candidate, make, [on_states(setting, drop=no_dropout)], setting)


def block(candidate: Candidate, setting: Surroundings) -> None:
    def make(sizes: Sizes) -> Any:
        told, residual = "made of its parts and options", partial(add, depth=DEPTH)
        parts = candidate.found, sizes, residual, candidate.component.options, setting.placement, setting.mlp
        made = require_module(candidate, candidate.call(build_block, told, *parts))
        lacking = [name for name in BLOCK_PARTS if not hasattr(made, name)]
        if lacking:
            raise candidate.refusal(f"has no attribute {lacking[0]}", "keep it: measures take networks apart by it")
        return first_of_pass(made)

    use, one = on_states(setting, drop=no_dropout), make(setting.sizes(MEMBERS))
    if hasattr(one, "widen"):
        x = candidate.call(one.widen, "given states", *use.inputs).detach()
        candidate.call(one.narrow, "given states as they leave the last block", x)
        use = Use("states", (x,), (tuple(x.shape[2:]),), also=use.also)
    try_maps(candidate, make, [use], setting)

"""Users' functions as layers, which map states (K, B, T, D) to states in float64.

A function of three arguments is an attention function, called with queries, keys and values (N, H, T, d), like
`torch.nn.functional.scaled_dot_product_attention`. Random maps surround it: SA(X) = f(X W_Q, X W_K, X W_V) W_O, with entries from
N(0, 1 / D). A function of one argument maps states (N, T, D) to states and has its own weights. Functions receive copies, so they may
change their arguments. They must be deterministic and compute in float64; otherwise chance or rounding would be measured (`Steady`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankfall.api.functions import AS_ONE, Steady, functions_of, name
from rankfall.design import Architecture, Component, field_declarations
from rankfall.errors import RankfallError, suggest
from rankfall.nets.network import Network, Shape, build
from rankfall.random_streams import stream

Function = Callable[..., Any]
Layer = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Layers:
    """The layers of a stack, and notes on them for the reader."""

    layers: list[Layer]
    drawn: bool  # whether a layer is an attention function with random maps, which depend on seed and heads
    parts: list[Steady]
    repeated: str

    def note(self) -> str:
        """Return the notes of the layers, which are complete once the layers were called."""
        return "; ".join(dict.fromkeys([self.repeated, *(part.note for part in self.parts)]).keys() - {""})

    def checked(self) -> list[Layer]:
        """Return layers that raise an error if what they return is not finite."""
        return [
            lambda x, layer=layer, number=number: check_finite(layer(x), f"layer {number} returns")  # type: ignore[misc]
            for number, layer in enumerate(self.layers, 1)
        ]


def layers_of(stack: Any, depth: int | None, draws: int, width: int, heads: int, seed: int) -> Layers:
    """Return a layer for each function of a list or child of a Sequential; any other function is repeated `depth` times."""
    check_whole_numbers(draws=draws, width=width, heads=heads, **({} if depth is None else {"depth": depth}))
    functions, unrolled, repeated = functions_of(stack, depth)
    parts = [steady(function) for function in functions]
    layers = [layer_of(part, draws, width, heads, seed, number) for number, part in enumerate(parts)]
    if unrolled:
        layers = [add_hint(layer) for layer in layers]
    return Layers(layers, any(arguments(part.function) == 3 for part in parts), parts, repeated)


def add_hint(layer: Layer) -> Layer:
    """Wrap a layer so that its errors mention that it is a child of a module."""

    def child(x: Tensor) -> Tensor:
        try:
            return layer(x)
        except RankfallError as error:
            raise RankfallError(f"{error}{AS_ONE}") from error

    return child


def steady(function: Any) -> Steady:
    """Wrap a function so that its first call checks it; raise an error if it cannot be called."""
    if not callable(function):
        raise RankfallError(
            f"{function!r} is not a function of states, or of queries, keys and values; pass a model of Hugging Face by its name"
        )
    return Steady(function)


def layer_of(function: Steady, draws: int, width: int, heads: int, seed: int, number: int = 0) -> Layer:
    """Return a function as a layer on (K, B, T, D). An attention function has K draws of random maps."""
    if arguments(function.function) == 1:
        return lambda x: call(function, x.flatten(0, 1)).reshape(x.shape)
    if width % heads:
        raise RankfallError(f"{heads} heads do not divide the width {width}")
    rngs = [stream(seed + draw, "api", "maps", number) for draw in range(draws)]
    shape = (width, width)
    maps = [torch.from_numpy(np.stack([rng.normal(0.0, width**-0.5, shape) for rng in rngs])) for _ in "qkvo"]

    def layer(x: Tensor) -> Tensor:
        q, k, v = (split(x @ weight.unsqueeze(1), heads) for weight in maps[:3])  # (K*B, H, T, d)
        context = call(function, q, k, v, shape=q.shape)
        joined: Tensor = context.reshape(*x.shape[:2], *context.shape[1:]).transpose(2, 3).flatten(-2)
        return joined @ maps[3].unsqueeze(1)

    return layer


def split(x: Tensor, heads: int) -> Tensor:
    """Split states into heads: (K, B, T, H*d) -> (K*B, H, T, d)."""
    return x.view(*x.shape[:-1], heads, -1).transpose(2, 3).flatten(0, 1)


def arguments(function: Function) -> int:
    """Return how many arguments a function takes: 1 (states) or 3 (queries, keys, values). A function without a signature takes 3."""
    schema = getattr(getattr(function, "forward", function), "schema", None)  # TorchScript has no Python signature
    if schema is not None:
        inputs = [
            argument for argument in schema.arguments if argument.name != "self" and not argument.has_default_value()
        ]
        return 1 if len(inputs) == 1 else 3
    try:
        parameters = inspect.signature(function.forward if isinstance(function, nn.Module) else function).parameters
    except (TypeError, ValueError):
        return 3
    plain = [p for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = len([p for p in plain if p.default is p.empty])
    if needed not in (1, 3):
        raise RankfallError(
            f"{name(function)} takes {needed} arguments: an attention function takes three (queries, keys, values), a layer one (states)"
        )
    return needed


def call(function: Steady, *inputs: Tensor, shape: torch.Size | None = None) -> Tensor:
    """Call a function and check that its output is a tensor of the right shape in float64."""
    try:
        output = function(*inputs)
    except RankfallError:
        raise
    except Exception as error:  # whatever a function may raise
        line = (str(error).strip().splitlines() or [""])[0][:200]
        shapes = ", ".join(str(tuple(x.shape)) for x in inputs)
        if "dtype" in line:
            line += " (weights beside modules must be float64 too, for example weight.to(x.dtype))"
        elif len(inputs) == 1 and any(word in line for word in ("shape", "dim", "size")):
            line += f" (states are {inputs[0].shape[-1]} wide here; width=... says otherwise, unless states are given)"
        raise RankfallError(f"{name(function)} fails on float64 of shape {shapes}: {line}") from error
    output = output[0] if isinstance(output, tuple) else output
    expected = shape or inputs[0].shape
    if not isinstance(output, Tensor) or output.shape != expected:
        got = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise RankfallError(f"{name(function)} returns {got}, expected {tuple(expected)}")
    if output.dtype != torch.float64:
        got = str(output.dtype).removeprefix("torch.")
        raise RankfallError(
            f"{name(function)} returns {got} for float64 input, so small residuals would be rounding: compute in the type of the input"
        )
    return output


def check_finite(x: Tensor, source: str) -> Tensor:
    """Return the states, or raise an error if they are not finite and so have no residual. `source` begins the message."""
    if not bool(x.isfinite().all()):
        raise RankfallError(f"{source} values that are not finite (NaN or infinite)")
    return x


def check_whole_numbers(**options: Any) -> None:
    """Raise an error if a value is not a whole number of at least 1."""
    for option, value in options.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise RankfallError(f"{option} is {value!r}: it must be a whole number of at least 1")


def refuse_unused(why: str, **options: Any) -> None:
    """Raise an error if an argument is given that would not be used."""
    for option, value in options.items():
        if value is not None:
            shown = "given" if isinstance(value, Tensor) else repr(value)
            raise RankfallError(f"{option} is {shown}, but {why}: leave it out")


def options_of(function: Function) -> list[str]:
    """Return the names of a function's keyword-only parameters."""
    return [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]


def check_options(function: str, options: Iterable[str], allowed: Iterable[str]) -> None:
    """Raise an error that suggests the nearest name if an option is unknown."""
    allowed = list(allowed)
    for option in options:
        if option not in allowed:
            hint = suggest(option, allowed)
            raise RankfallError(f"{function} has no option {option!r}; allowed: {', '.join(sorted(allowed))}{hint}")


def check_seed(seed: Any) -> int:
    """Return the seed, 0 if it is None; raise an error unless it is a whole number of at least 0."""
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
        raise RankfallError(f"seed is {seed!r}: it must be a whole number of at least 0")
    return seed or 0


def draw_states(draws: int, samples: int, tokens: int, width: int, seed: int) -> Tensor:
    """Draw random states (K, B, T, D): entries from N(0, 1), plus a row from N(0, 1) that all tokens of a sample share."""
    check_whole_numbers(draws=draws, samples=samples, tokens=tokens, width=width)
    rngs = [stream(seed + draw, "api", "states", tokens, width) for draw in range(draws)]
    common = np.stack([rng.normal(size=(samples, 1, width)) for rng in rngs])
    return torch.from_numpy(common + np.stack([rng.normal(size=(samples, tokens, width)) for rng in rngs]))


def architecture(parts: dict[str, Any], **sizes: int) -> Architecture:
    """Build an architecture from parts as in a configuration. Parts that are missing are those of attention alone."""
    from rankfall.rank.orders.measure import ALONE
    from rankfall.run.config.options import resolve

    check_whole_numbers(**sizes)
    check_options("an architecture", parts, vars(ALONE))
    kinds, values = field_declarations(Architecture), dict(parts)
    for field, value in parts.items():
        if field in kinds:
            if not isinstance(value, str) and not (isinstance(value, dict) and isinstance(value.get("name"), str)):
                raise RankfallError(f"{field} is {value!r}: it must be a name, or a dict with a name and options")
            values[field] = Component.parse(value)
            resolve(field, values[field], field)  # raises an error if a name, an option or its value is not allowed
        elif field == "norm_placement" and value not in ("post", "pre"):
            raise RankfallError(f"norm_placement is {value!r}: it must be 'post' or 'pre'")
        elif field in ("head_width", "mlp_width") and value is not None:
            check_whole_numbers(**{field: value})
    return replace(ALONE, **(sizes | values))


def network_of(design: Architecture, draws: int, tokens: int, seed: int) -> Network:
    """Build K networks of an architecture at initialisation, in float64, with states as inputs."""
    shape = Shape("vectors", "values", length=tokens, size_in=design.width, size_out=1)
    network = build(design, shape, draws, torch.float64)
    network.initialise([seed + draw for draw in range(draws)])
    return network.requires_grad_(False)

"""Models of the transformers library by name, for a check: a type, a folder or a name on the hub, with random inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from rankfall.errors import RankfallError, describe_error
from rankfall.models.families.classes import NoModel, maker, refused_defaults
from rankfall.models.families.example import FAILURES, example_inputs
from rankfall.models.families.mended import DIVISORS, FEW, divided_values, mended_values
from rankfall.models.families.small import COUNT_OF_LAYERS, LAYERS, configure, small_config
from rankfall.models.load import read_config
from rankfall.models.source import ModelSource, quiet, usual_phase
from rankfall.models.weights import load_pretrained, prepare_config

MOST_PARTS = 6  # of a model that are tried in place of the whole
MOST_REFUSALS = 4  # small configurations that fail with the same error as the default configuration
MOST = 400_000_000  # weights; in float64 and with a copy 6 GB


def library_model(
    name: str, settings: dict[str, Any], *, small: bool, length: int, seed: int, say: Callable[[str], None]
) -> tuple[nn.Module, Any, str]:
    """Return the model, its inputs and a name for it."""
    if small:
        say(f"builds {name} at small size, with weights drawn by the library")
        model, config, inputs = small_example(name, settings, seed, length)
        if not isinstance(config, type(small_config(name))):
            say(f"the whole runs on none of the inputs that were tried: measures its part {type(model).__name__}")
        return model, inputs, f"{name} (small)"
    source = ModelSource(name, usual_phase(name), config=settings)
    config = read_config(source)
    if source.phase == "pretrained":
        say(f"reads the weights of {name}")
        model = load_pretrained(source, config)[0]
    else:
        say(f"builds {name}, with weights drawn by the library")
        model = build_model(name, config, seed)
    return model, example_inputs(model, config, tokens=length, seed=seed), name


def small_example(
    kind: str, settings: dict[str, Any], seed: int, tokens: int = 16, depth: int = LAYERS
) -> tuple[nn.Module, Any, dict[str, torch.Tensor]]:
    """Return a small model of this type, its configuration, and inputs on which it runs. If none run, return a part that runs instead."""
    try:
        return running_example(kind, small_config(kind, depth, **settings), seed, tokens)
    except Exception as error:  # whatever the library raises
        first = error
        if isinstance(error, NoModel) or "there is no model type" in str(error) or is_package_missing(error):
            raise
    refused, repeats = refused_defaults(kind), 0
    for values, most in mended_values(kind, depth, str(first)):
        try:
            return running_example(kind, configure(kind, {**values, **settings}), seed, tokens, most, thorough=False)
        except Exception as error:  # the first error is the one to report
            repeats += bool(refused) and fails_alike(refused, error)
        if repeats == MOST_REFUSALS:
            break
    part = running_part(kind, depth, settings, seed, tokens)
    if part is not None:
        return part
    known = isinstance(first, RankfallError)
    line = str(first) if known else f"model type {kind!r} cannot be made small: {describe_error(first)}"
    return example_of_few_layers(kind, settings, seed, tokens, RankfallError(line))


def fails_alike(refused: str, error: BaseException) -> bool:
    """Return whether a small configuration fails with the same error as the default one, which no other size repairs."""
    return refused == describe_error(error, 400) or refused[:60] in str(error)


def running_example(
    kind: str, config: Any, seed: int, tokens: int, most: int = FEW, *, thorough: bool = True
) -> tuple[nn.Module, Any, dict[str, torch.Tensor]]:
    """Return a model of a configuration, the configuration, and inputs on which the model runs."""
    model = build_model(kind, config, seed, most)
    return model, config, example_inputs(model, config, tokens=tokens, seed=seed, thorough=thorough)


def running_part(
    kind: str, depth: int, settings: dict[str, Any], seed: int, tokens: int
) -> tuple[nn.Module, Any, dict[str, torch.Tensor]] | None:
    """Return a part of a small model that is itself a model of the library and runs, or None. Inputs of the whole cannot be drawn.

    Configurations are the small one, and those with all widths divided alike, with small pictures and with the default ones.
    """
    from transformers import CONFIG_MAPPING

    def divided(pictures: bool) -> Any:
        return configure(kind, {**divided_values(CONFIG_MAPPING[kind], depth, DIVISORS[0], pictures), **settings})

    for config in (partial(small_config, kind, depth, **settings), partial(divided, True), partial(divided, False)):
        try:
            whole = build_model(kind, config(), seed, FEW)
        except Exception:  # whatever the library raises
            continue
        part = part_of(whole, seed, tokens)
        if part is not None:
            return part
    return None


def part_of(whole: nn.Module, seed: int, tokens: int) -> tuple[nn.Module, Any, dict[str, torch.Tensor]] | None:
    """Return the first part that runs. Parts of the model's own type come before those of other types, and the largest first."""
    from transformers import PreTrainedModel

    parts = [part for part in whole.modules() if isinstance(part, PreTrainedModel) and part is not whole]
    home = type(whole).__module__.rpartition(".")[0]
    parts.sort(
        key=lambda part: (
            not type(part).__module__.startswith(home),
            -sum(weight.numel() for weight in part.parameters()),
        )
    )
    for part in parts[:MOST_PARTS]:
        try:
            return part, part.config, example_inputs(part, part.config, tokens=tokens, seed=seed, thorough=False)
        except RankfallError:
            continue
    return None


def is_package_missing(error: BaseException) -> bool:
    """Return whether a package is missing, without which the model cannot be built in any size."""
    return isinstance(error, ImportError) or isinstance(error.__cause__, ImportError)


def example_of_few_layers(
    kind: str, settings: dict[str, Any], seed: int, tokens: int, before: RankfallError
) -> tuple[nn.Module, Any, dict[str, torch.Tensor]]:
    """Return a model of the default configuration with few layers, or raise the error of the small sizes if that fails too."""
    from transformers import CONFIG_MAPPING

    try:
        base = CONFIG_MAPPING[kind]()
        layers = {
            key: LAYERS
            for key, value in base.to_dict().items()
            if COUNT_OF_LAYERS.search(key) and isinstance(value, int)
        }
        config = CONFIG_MAPPING[kind](**{**layers, **settings})
        model = build_model(kind, config, seed, FEW)
        inputs = example_inputs(model, config, tokens=tokens, seed=seed, thorough=False)
    except Exception:  # whatever the library raises
        raise before from None
    return model, config, inputs


def build_model(name: str, config: Any, seed: int, most: int = MOST) -> nn.Module:
    """Build the model with weights drawn by the library from this seed, unless it is too large."""
    try:
        make = maker(config)
    except FAILURES as error:
        raise RankfallError(f"model {name!r} cannot be built: {describe_error(error)}") from error
    try:
        prepare_config(config)
        with quiet(), torch.device("meta"):
            count = sum(weight.numel() for weight in make(config).parameters())
    except FAILURES:
        count = 0  # some cannot be built without storage
    if count > most:
        raise RankfallError(
            f"model {name!r} has {count / 1e9:.1f} billion weights: --small, or --set with fewer layers or a smaller width"
        )
    try:
        with torch.random.fork_rng(devices=[]), quiet():
            torch.manual_seed(seed)
            model: nn.Module = make(config)
    except FAILURES as error:
        raise RankfallError(f"model {name!r} cannot be built: {describe_error(error)}") from error
    return model.float().eval()

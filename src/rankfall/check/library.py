"""Models of the transformers library by name, for a check: a type, a folder or a name on the hub, with random inputs; and the measurement
of a real model for the reference bands, on its own text.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from statistics import fmean
from typing import Any

import torch
from torch import nn

from rankfall.check.bands import BIRTH, PRETRAINED, RealModel, kind_of
from rankfall.check.passes import run_pass
from rankfall.errors import RankfallError, describe_error
from rankfall.models.families.classes import NoModel, maker, refused_defaults
from rankfall.models.families.example import FAILURES, example_inputs
from rankfall.models.families.mended import DIVISORS, FEW, divided_values, mended_values
from rankfall.models.families.small import COUNT_OF_LAYERS, LAYERS, configure, small_config
from rankfall.models.load import load, read_config
from rankfall.models.source import PACKAGED, ModelSource, quiet, usual_phase
from rankfall.models.texts import Texts, batch_for
from rankfall.models.weights import load_pretrained, prepare_config
from rankfall.rank.residual import relative_residual
from rankfall.streams.arguments import Arguments, as_format
from rankfall.streams.examine import examine
from rankfall.streams.sized import has_norm

MOST_PARTS = 6  # of a model that are tried in place of the whole
MOST_REFUSALS = 4  # small configurations that fail with the same error as the default configuration
MOST = 400_000_000  # weights; in float64 and with a copy 6 GB
PAIR = 2  # samples in a pass; one would not show the axis of samples


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
    """Return a small model of this type, its configuration, and inputs on which it runs. If none run, return a part that runs instead.

    The last attempt is the default configuration with few layers. The error of the first attempt is the one to report.
    """
    try:
        return running_example(kind, small_config(kind, depth, **settings), seed, tokens)
    except Exception as error:  # whatever the library raises
        first = error
        package_missing = isinstance(error, ImportError) or isinstance(error.__cause__, ImportError)
        if isinstance(error, NoModel) or "there is no model type" in str(error) or package_missing:
            raise
    refused, repeats = refused_defaults(kind), 0
    for values, most in mended_values(kind, depth, str(first)):
        try:
            return running_example(kind, configure(kind, {**values, **settings}), seed, tokens, most, thorough=False)
        except Exception as error:
            # an error of the default configuration, too, is one that no other size repairs
            repeats += bool(refused) and (refused == describe_error(error, 400) or refused[:60] in str(error))
        if repeats == MOST_REFUSALS:
            break
    if (part := running_part(kind, depth, settings, seed, tokens)) is not None:
        return part
    try:
        return running_example(kind, few_layers(kind, settings), seed, tokens, thorough=False)
    except Exception:
        if isinstance(first, RankfallError):
            raise RankfallError(str(first)) from None
        raise RankfallError(f"model type {kind!r} cannot be made small: {describe_error(first)}") from None


def few_layers(kind: str, settings: dict[str, Any]) -> Any:
    """Return the default configuration of a type with few layers."""
    from transformers import CONFIG_MAPPING

    counts = {key: value for key, value in CONFIG_MAPPING[kind]().to_dict().items() if COUNT_OF_LAYERS.search(key)}
    layers = {key: LAYERS for key, value in counts.items() if isinstance(value, int)}
    return CONFIG_MAPPING[kind](**{**layers, **settings})


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

    Configurations are the small one, and those with all widths divided alike, with small pictures and with the default ones. Parts of the
    model's own type come before those of other types, and the largest first.
    """
    from transformers import CONFIG_MAPPING, PreTrainedModel

    def divided(pictures: bool) -> Any:
        return configure(kind, {**divided_values(CONFIG_MAPPING[kind], depth, DIVISORS[0], pictures), **settings})

    for config in (partial(small_config, kind, depth, **settings), partial(divided, True), partial(divided, False)):
        try:
            whole = build_model(kind, config(), seed, FEW)
        except Exception:  # whatever the library raises
            continue
        parts = [part for part in whole.modules() if isinstance(part, PreTrainedModel) and part is not whole]
        home = type(whole).__module__.rpartition(".")[0]
        sizes = {part: sum(weight.numel() for weight in part.parameters()) for part in parts}
        parts.sort(key=lambda part: (not type(part).__module__.startswith(home), -sizes[part]))
        for part in parts[:MOST_PARTS]:
            with suppress(RankfallError):
                return part, part.config, example_inputs(part, part.config, tokens=tokens, seed=seed, thorough=False)
    return None


def build_model(name: str, config: Any, seed: int, most: int = MOST) -> nn.Module:
    """Build the model with weights drawn by the library from this seed, unless it is too large."""
    try:
        make, count = maker(config), 0
        with suppress(*FAILURES):  # some cannot be built without storage
            prepare_config(config)
            with quiet(), torch.device("meta"):
                count = sum(weight.numel() for weight in make(config).parameters())
        if count > most:
            raise RankfallError(
                f"model {name!r} has {count / 1e9:.1f} billion weights: --small, or --set with fewer layers or a smaller width"
            )
        with torch.random.fork_rng(devices=[]), quiet():
            torch.manual_seed(seed)
            model: nn.Module = make(config)
    except FAILURES as error:
        raise RankfallError(f"model {name!r} cannot be built: {describe_error(error)}") from error
    return model.float().eval()


def measure_model(source: ModelSource, texts: Texts) -> RealModel:
    """Return the row of a model, of its longest stream."""
    loaded = load(source, seed=texts.seed)
    batch = batch_for(loaded, texts)
    examined = examine(loaded.model, batch.part(0, PAIR), name=source.name)
    flow = examined.flows[0]
    curves = []
    for start in range(0, batch.samples - PAIR + 1, PAIR):
        part = as_format(Arguments((), batch.part(start, start + PAIR)), examined.dtype)
        curves.append([float(relative_residual(rows).mean()) for rows in run_pass(examined, flow, part).states])
    packaged = PACKAGED.get(source.name)
    pretrained = source.phase == "pretrained"
    return RealModel(
        name=source.name,
        when=PRETRAINED if pretrained else BIRTH,
        kind=kind_of(flow, has_norm(examined, flow)),
        width=flow.width,
        residual=tuple(float(f"{fmean(values):.4g}") for values in zip(*curves)),
        package=f"{packaged.distribution} {version(packaged.distribution)}" if packaged and pretrained else "",
        revision=loaded.revision if pretrained else f"seed {texts.seed}",
        quantised=source.quantise or (packaged.quantised if packaged and pretrained else ""),
        text=batch.source,
        samples=len(curves) * PAIR,
        length=texts.length,
        versions=f"torch {version('torch')}, transformers {version('transformers')}",
    )

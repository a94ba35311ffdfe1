"""Models by hub name, local folder or config alone, at initialisation or pretrained, checked before any work starts.

A source is, in this order: a folder; a model of an installed package (`minilm`, a BERT of 6 layers; `rxnmapper`, an ALBERT; `smollm2`, a
Llama); at initialisation, a checkpoint whose sizes are listed in families/published.py or a model type of the library ("bert"), neither of
which needs a network; or a name on the hub. Weights are read from safetensors, except for those of the packages, and code from a model's
repository is never run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import nn

from rankfall.errors import RankfallError, suggest
from rankfall.models.families.published import SIZES
from rankfall.models.source import PACKAGED, PHASES, ModelSource, folder_of, hub_reachable, one_line
from rankfall.models.streaming import Streamer
from rankfall.models.weights import initialise, load_pretrained, stream_model
from rankfall.streams.arguments import NoStream

TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "tokenizer.model",
    "sentencepiece.bpe.model",
)


@dataclass
class Loaded:
    """A model ready to be measured, with its sizes."""

    model: nn.Module
    config: Any
    revision: str
    layers: int
    heads: int
    width: int
    positions: int | None
    images: bool
    streamer: Streamer | None
    tokenizer_from: str | None  # a folder, a file (vocab.txt, GGUF) or hub name; None: learn one from the text
    text: str = "topics"  # default


def load(source: ModelSource, *, seed: int = 0) -> Loaded:
    """Load a model in float32 and eval mode, with attention that exposes its weights. `seed` determines the initialisation."""
    config = read_config(source)
    streamer = None
    if source.streamed:
        model, revision, streamer = stream_model(source, config, seed)
    elif source.phase == "init":
        model, revision = initialise(source, config, seed), "init"
    else:
        model, revision = load_pretrained(source, config)
    return describe(source, model, config, revision, streamer)


def read_config(source: ModelSource) -> Any:
    """Read the config from the folder, the known sizes, the library's defaults of a model type, or the hub, in this order."""
    from transformers import CONFIG_MAPPING, AutoConfig

    if source.phase not in PHASES:
        raise RankfallError(f"phase {source.phase!r} is not one of {', '.join(PHASES)}")
    if source.config and source.phase == "pretrained":
        raise RankfallError(f"model {source.name!r}: config values can only be changed at phase: init")
    folder = folder_of(source)
    if folder is not None:
        with one_line(source):
            alone: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True, **gguf_file(source)}
            return with_values(source, partial(AutoConfig.from_pretrained, folder, **alone))
    if source.phase == "init":
        kind, values = SIZES.get(source.name, (source.name, {}))
        if kind in CONFIG_MAPPING:
            with one_line(source):
                return with_values(source, lambda **chosen: CONFIG_MAPPING[kind](**{**values, **chosen}))
        if "/" not in source.name:
            hint = suggest(source.name, [*SIZES, *CONFIG_MAPPING, *PACKAGED])
            if hint and not hub_reachable():
                raise RankfallError(f"model {source.name!r} is not known and the hub cannot be reached{hint}")
    where: dict[str, Any] = {"revision": source.revision or "main", "local_files_only": not hub_reachable()}
    with one_line(source):
        return with_values(source, partial(AutoConfig.from_pretrained, source.name, trust_remote_code=False, **where))


def gguf_file(source: ModelSource) -> dict[str, str]:
    """Return the option that has the library read config and tokenizer of a GGUF file, if the source is one."""
    packaged = PACKAGED.get(source.name)
    return {"gguf_file": packaged.weights} if packaged is not None and packaged.weights.endswith(".gguf") else {}


def with_values(source: ModelSource, make: Callable[..., Any]) -> Any:
    """Return the config with the values of the source. An unknown name is an error, since the library would silently ignore it."""
    if source.config:
        check_names(f"model {source.name!r}: config", make(), source.config)
    return make(**source.config)


def check_names(path: str, config: Any, chosen: dict[str, Any]) -> None:
    """Raise an error for a chosen value that the config, or a part of it, does not have."""
    for name, value in chosen.items():
        if not hasattr(config, name):
            names = sorted({*config.to_dict(), *config.attribute_map})
            hint = suggest(name, names) or f"; it has {', '.join(names)}"
            raise RankfallError(f"{path}.{name}: {type(config).__name__} has no such value{hint}")
        inner = getattr(config, name)
        if isinstance(value, dict) and hasattr(inner, "attribute_map"):
            check_names(f"{path}.{name}", inner, value)


def describe(source: ModelSource, model: nn.Module, config: Any, revision: str, streamer: Streamer | None) -> Loaded:
    """Return a loaded model with its sizes, under the same names for all model types."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    sizes = {name: getattr(text, name, None) for name in ("num_hidden_layers", "hidden_size")}
    for name, size in sizes.items():
        if not isinstance(size, int):
            raise NoStream(
                f"model {source.name!r} ({text.model_type}): its config gives no {name}, so additions cannot be counted"
            )
    layers = int(text.num_hidden_layers) * int(getattr(text, "inner_group_num", 1) or 1)
    images = getattr(model, "main_input_name", "input_ids") == "pixel_values"
    positions = getattr(text, "max_position_embeddings", None)
    if positions is not None and text.model_type in ("roberta", "xlm-roberta", "camembert", "longformer"):
        positions -= text.pad_token_id + 1  # their positions are counted from padding index + 1
    folder = folder_of(source)
    tokenizer_from = None if source.phase == "init" else str(folder or source.name)
    if folder is not None and any((folder / name).exists() for name in TOKENIZER_FILES):
        tokenizer_from = str(folder)
    packaged = PACKAGED.get(source.name)
    if folder is not None and packaged is not None and packaged.text == "reactions":
        tokenizer_from = str(folder / "vocab.txt")
    if folder is not None and (file := gguf_file(source)):
        tokenizer_from = str(folder / file["gguf_file"])
    return Loaded(
        model=model,
        config=config,
        revision=revision,
        layers=layers,
        heads=int(getattr(text, "num_attention_heads", None) or 0),
        width=int(text.hidden_size),
        positions=int(positions) if positions and positions > 0 and not images else None,
        images=images,
        streamer=streamer,
        tokenizer_from=tokenizer_from,
        text="pictures" if images else packaged.text if packaged is not None else "topics",
    )

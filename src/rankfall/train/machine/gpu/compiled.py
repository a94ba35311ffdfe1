"""Kernels compiled by NVIDIA's run-time compiler, which comes with PyTorch, and kept in the user's cache folder by their text.

PyTorch has no public way to compile a kernel and keep it: the two of its functions that this file calls are private, and `COMPILER` says so
where a version has moved them.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch

from rankfall.caches import use
from rankfall.disk import StoreError, atomic, cache_home
from rankfall.errors import RankfallError

OPTIONS = ("-std=c++17",)
COMPILER = "this version of PyTorch ({}) has no compiler for kernels where version 2.11 has one; say `compute: {{engine: plain}}`"
Launch = Callable[..., None]  # (grid=, block=, args=)


def load_kernel(text: str, name: str, device: torch.device) -> Launch:
    """The kernel of this name in a text, on a GPU."""
    try:
        from torch.cuda._utils import _cuda_load_module, _nvrtc_compile
    except ImportError as error:
        raise RankfallError(COMPILER.format(torch.__version__)) from error
    with torch.cuda.device(device):
        code = read_kept(text, device)
        if code is None:
            code = bytes(_nvrtc_compile(text, name, nvcc_options=list(OPTIONS))[0])
            keep(text, device, code)
        loaded: Any = _cuda_load_module(code, [name])
    found: Launch = loaded[name] if isinstance(loaded, dict) else getattr(loaded, name)
    return found


def path_of(text: str, device: torch.device) -> Any:
    about = text, OPTIONS, torch.version.cuda, torch.cuda.get_device_capability(device)
    home = cache_home()
    return None if home is None else home / "gpu" / f"{hashlib.sha256(repr(about).encode()).hexdigest()[:32]}.cubin"


def read_kept(text: str, device: torch.device) -> bytes | None:
    """The machine code, if it was kept whole."""
    path = path_of(text, device)
    try:
        digest, _, code = path.read_bytes().partition(b"\n") if path is not None else (b"", b"", b"")
    except OSError:
        return None
    if not code or digest != hashlib.sha256(code).hexdigest().encode():
        return None
    use(path)
    return code


def keep(text: str, device: torch.device, code: bytes) -> None:
    path = path_of(text, device)
    if path is None:
        return
    with suppress(StoreError), atomic(path) as file:
        file.write(hashlib.sha256(code).hexdigest().encode() + b"\n" + code)

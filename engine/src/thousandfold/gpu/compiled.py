"""Compilation of kernels by NVIDIA's run-time compiler, which comes with PyTorch. The user's cache folder keeps them by text.

PyTorch has no public way to compile and keep a kernel, so this file calls two private functions. `NO_COMPILER` is the error if another
version of PyTorch has moved them.
"""

import functools
import hashlib
from collections.abc import Callable
from typing import Any

import torch

from thousandfold.disk import keep, path_in_cache, read_kept
from thousandfold.errors import NoKernel

OPTIONS = ("-std=c++17",)
NO_COMPILER = "PyTorch {} cannot compile the kernel for this GPU: {}; see that CUDA_HOME names CUDA's folder"
Launch = Callable[..., None]  # (grid=, block=, args=)


@functools.lru_cache(64)
def load_kernel(text: str, name: str, device: torch.device) -> Launch:
    """Return the kernel with this name in a text, compiled for a GPU."""
    with torch.cuda.device(device):
        try:
            from torch.cuda._utils import _cuda_load_module, _nvrtc_compile

            file = path_in_cache("gpu", name_of(text, device))
            code = read_kept(file)
            if code is None:
                code = bytes(_nvrtc_compile(text, name, nvcc_options=list(OPTIONS))[0])
                keep(file, code)
            loaded: Any = _cuda_load_module(code, [name])
        except (ImportError, OSError, RuntimeError) as error:
            raise NoKernel(NO_COMPILER.format(torch.__version__, str(error).splitlines()[0])) from error
    kernel: Launch = loaded[name] if isinstance(loaded, dict) else getattr(loaded, name)

    def launch(**arguments: Any) -> None:
        with torch.cuda.device(device):
            kernel(**arguments)

    return launch


def name_of(text: str, device: torch.device) -> str:
    identity = text, OPTIONS, torch.__version__, torch.version.cuda, torch.cuda.get_device_capability(device)
    return f"{hashlib.sha256(repr(identity).encode()).hexdigest()[:32]}.cubin"

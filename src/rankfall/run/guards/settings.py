"""Settings of a process that change numbers: number formats, precision, threads and modes of torch, NumPy's errors, the working directory.

Each is read by a function and, where that can be done, put back by another. torch is read only where it is imported.
"""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

Setting = tuple[Callable[[], Any], Callable[[Any], Any] | None]  # reads it, puts it back
BACKENDS = {  # attributes of modules and objects of torch.backends
    "cuda.matmul": ("allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"),
    "cudnn": ("enabled", "benchmark", "deterministic", "allow_tf32"),
    "mkldnn.matmul": ("fp32_precision",),
    "mkldnn.conv": ("fp32_precision",),
}


def read_settings() -> dict[str, Any]:
    """Name -> value; what this version of torch does not tell is left out."""
    found = {}
    for name, (read, _) in known_settings().items():
        with suppress(AttributeError, RuntimeError, FileNotFoundError):
            found[name] = read()
    return found


def put_back(name: str, value: Any) -> None:
    """Undo a change, as far as that can be done."""
    _, write = known_settings()[name]
    if write is not None:
        with suppress(AttributeError, RuntimeError, OSError):
            write(value)


def known_settings() -> Mapping[str, Setting]:
    found: dict[str, Setting] = {"os.getcwd()": (os.getcwd, os.chdir)}
    if (numpy := sys.modules.get("numpy")) is not None and hasattr(numpy, "geterr"):
        found["numpy.geterr()"] = (numpy.geterr, lambda before: numpy.seterr(**before))
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "set_num_threads"):  # half imported
        return found
    found |= {
        "torch.get_default_dtype()": (torch.get_default_dtype, torch.set_default_dtype),
        "torch.get_default_device()": (lambda: str(torch.get_default_device()), torch.set_default_device),
        "torch.get_float32_matmul_precision()": (
            torch.get_float32_matmul_precision,
            torch.set_float32_matmul_precision,
        ),
        "torch.get_num_threads()": (torch.get_num_threads, torch.set_num_threads),
        "torch.are_deterministic_algorithms_enabled()": (
            torch.are_deterministic_algorithms_enabled,
            torch.use_deterministic_algorithms,
        ),
        "torch.is_grad_enabled()": (torch.is_grad_enabled, torch._C._set_grad_enabled),
        "torch.is_inference_mode_enabled()": (torch.is_inference_mode_enabled, None),
        "torch.is_anomaly_enabled()": (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
        "torch.is_autocast_enabled('cpu')": (
            partial(torch.is_autocast_enabled, "cpu"),
            partial(torch.set_autocast_enabled, "cpu"),
        ),
        "torch.is_autocast_enabled('cuda')": (
            partial(torch.is_autocast_enabled, "cuda"),
            partial(torch.set_autocast_enabled, "cuda"),
        ),
        "torch.backends.mkldnn.enabled": (torch._C._get_mkldnn_enabled, torch._C._set_mkldnn_enabled),
        "torch.set_flush_denormal": (flushes_denormals, torch.set_flush_denormal),
        "torch function modes": (torch._C._len_torch_function_stack, None),
        "torch dispatch modes": (torch._C._len_torch_dispatch_stack, None),
    }
    for backend, names in BACKENDS.items():
        holder = torch.backends
        for part in backend.split("."):
            holder = getattr(holder, part, None)
        for name in names:
            if holder is not None:
                read, write = partial(getattr, holder, name), partial(setattr, holder, name)
                found[f"torch.backends.{backend}.{name}"] = read, write
    return found


def flushes_denormals() -> bool:
    """Whether the processor rounds the smallest numbers to 0 in this thread."""
    least = 5e-324
    return least * 1.0 == 0.0

"""The environment of a job: variables that libraries, compilers and clusters read, and none besides.

What a component wants to know is an option, which is in its key; a variable is in none. So a job has only the variables named here,
and a component that reads one of them by itself is refused: whatever it got, its number would depend on it.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "rankfall.variable"  # an audit event: the variable that is read, or nothing for all
PASSED = frozenset(
    {
        # the user, the machine, the terminal
        *("HOME", "USER", "LOGNAME", "SHELL", "PATH", "PWD", "TMPDIR", "TMP", "TEMP", "TERM", "COLUMNS", "LINES"),
        *("LANG", "LANGUAGE", "TZ", "HOSTNAME", "NO_COLOR", "LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH"),
        *("SYSTEMROOT", "CI", "VIRTUAL_ENV"),
        # compilers and allocators
        *("CC", "CXX", "CPATH", "LIBRARY_PATH", "GLIBC_TUNABLES"),
        # certificates of networks
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    }
)
FAMILIES = (
    *("LC_", "XDG_", "PYTHON", "CONDA_", "RANKFALL_", "GIT_"),
    # threads and instructions of numerical libraries
    *("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "GOTO_", "BLIS_", "VECLIB_", "NUMEXPR_", "NPY_", "NUMPY_"),
    *("ATEN_", "ONEDNN_", "DNNL_", "MALLOC_", "TBB_", "I_MPI_"),
    # PyTorch, its compilers, numba, and GPUs
    *("TORCH", "PYTORCH_", "TRITON_", "INDUCTOR_", "NUMBA_", "LLVM_", "CUDA", "CUBLAS", "CUDNN", "NVIDIA_", "NCCL_"),
    *("GPU_", "ROCR_", "ROCM_", "HIP_", "HSA_", "MIOPEN_"),
    # models and data sets of hubs, pictures
    *("HF_", "HUGGINGFACE_", "TRANSFORMERS_", "TOKENIZERS_", "SAFETENSORS_", "ARROW_", "MPL", "FONTCONFIG_"),
    # schedulers
    *("SLURM", "SBATCH_", "PBS_", "LSB_", "SGE_", "SNAKEMAKE"),
)
PROXIES = frozenset(
    {"http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy"}
)  # in small letters or in capitals


def passes(name: str) -> bool:
    """Whether a variable is there in a job."""
    return name in PASSED or name.startswith(FAMILIES) or name.lower() in PROXIES


class Sealed(os._Environ):  # type: ignore[type-arg]
    """`os.environ` of a job: tells the watch of each variable that is read."""

    def __getitem__(self, key: str) -> str:
        sys.audit(VARIABLE, key)
        return super().__getitem__(key)  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        sys.audit(VARIABLE, "")
        return super().__iter__()


@contextmanager
def seal_environment() -> Iterator[None]:
    """Within, only these variables are there, for this process and those that it starts. Afterwards all are as before."""
    before, kind = dict(os.environ), type(os.environ)
    for name in before:
        if not passes(name):
            del os.environ[name]
    os.environ.__class__ = Sealed  # modules hold the object itself
    try:
        yield
    finally:
        os.environ.__class__ = kind
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        for name, value in before.items():
            if os.environ.get(name) != value:
                os.environ[name] = value

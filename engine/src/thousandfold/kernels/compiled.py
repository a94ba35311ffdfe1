"""Settings of the compilation of kernels. Only the whole step is called from Python, and it releases the interpreter lock."""

from typing import Any

import numba
from numba.core import config

SETTINGS: Any = config  # settings of numba from the environment
JIT: Any = numba.njit
INNER = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}

entry = JIT(nogil=True, error_model="numpy")

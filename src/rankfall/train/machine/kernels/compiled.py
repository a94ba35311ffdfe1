"""How kernels are compiled: none but the step as a whole is called from Python, and they hold no lock of the interpreter."""

from typing import Any

import numba
from numba.core import config

SETTINGS: Any = config  # of numba, from the environment
JIT: Any = numba.njit
INNER = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}

entry = JIT(nogil=True, error_model="numpy")

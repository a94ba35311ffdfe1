"""How kernels are compiled: none but the step as a whole is called from Python, and they hold no lock of the interpreter.

Additions may be reordered and merged with multiplications where a kernel is elementwise, but infinities and NaN keep their meaning, since
they end a member's training.
"""

from typing import Any

import numba
from numba.core import config

SETTINGS: Any = config  # of numba, from the environment
JIT: Any = numba.njit
INNER = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}

compiled = JIT(**INNER)
exact = JIT(**INNER, fastmath={"contract"})
elementwise = JIT(**INNER, fastmath={"contract", "reassoc", "nsz", "arcp"})
inlined = JIT(inline="always")  # into the function that calls it, before it is compiled: for what is used once
entry = JIT(nogil=True, error_model="numpy")

"""Compiled models: a step that is looked at is computed by PyTorch itself, as if it were not compiled, so that its operations can be seen.

Nothing is compiled anew for it, and the compiled code is used again in the step after. It makes the same numbers up to rounding.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch

_ASKED: dict[int, Any] = {}  # who wants it, of several watchers; the first holds what it was before


class EagerSteps:
    """Between `begin` and `end` compiled functions run as they are written."""

    def begin(self) -> None:
        if id(self) in _ASKED:
            return
        with suppress(RuntimeError):  # inside of compiled code (an optimiser's step that is compiled)
            _ASKED[id(self)] = None if _ASKED else torch.compiler.set_stance("force_eager")

    def end(self) -> None:
        if id(self) not in _ASKED:
            return
        stance = _ASKED.pop(id(self))
        if stance is not None and _ASKED:  # another goes on, and ends it
            _ASKED[next(iter(_ASKED))] = stance
        elif stance is not None:
            with suppress(RuntimeError):
                stance.__exit__(None, None, None)

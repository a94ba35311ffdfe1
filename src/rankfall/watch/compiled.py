"""Compiled models: a measured step runs in eager mode, so that its operations are visible.

Nothing is recompiled for it, and the next step uses the compiled code again. Both give the same numbers up to rounding.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch

_ASKED: dict[int, Any] = {}  # watchers in eager mode; the first holds the previous stance


class EagerSteps:
    """Switch to eager mode: between `begin` and `end` compiled functions run uncompiled."""

    def begin(self) -> None:
        if id(self) in _ASKED:
            return
        with suppress(RuntimeError):  # inside compiled code, such as a compiled optimiser step
            _ASKED[id(self)] = None if _ASKED else torch.compiler.set_stance("force_eager")

    def end(self) -> None:
        if id(self) not in _ASKED:
            return
        stance = _ASKED.pop(id(self))
        if stance is not None and _ASKED:  # another watcher is still active and restores it
            _ASKED[next(iter(_ASKED))] = stance
        elif stance is not None:
            with suppress(RuntimeError):
                stance.__exit__(None, None, None)

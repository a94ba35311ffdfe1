"""Train a thousand small PyTorch modules at once, whoever wrote them: each as if it were alone, in truly parallel steps.

The training step of one member (loss, gradient, optimiser) is traced to a flat program of few kinds of instructions (`codes.py`), which a
machine that is compiled once runs for one member after another, on a processor or as one kernel on a GPU.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thousandfold.errors import EngineError
from thousandfold.optimizers import SGD, Adam, AdamW, RowOptimizer

if TYPE_CHECKING:
    from thousandfold.train import Explanation, TrainedMembers, explain, train_many

__version__ = "0.1.0"
__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "EngineError",
    "Explanation",
    "RowOptimizer",
    "TrainedMembers",
    "explain",
    "train_many",
]


def __getattr__(name: str) -> Any:
    """Import what traces at its first use, since it takes a second."""
    if name in __all__:
        return getattr(import_module("thousandfold.train"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

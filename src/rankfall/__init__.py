"""Rankfall: what attention loses with depth.

    from rankfall import residuals, order_of_contraction, collapse_law, token_identity, attribution, watch

`watch` is in `rankfall/watch`, the others are in `rankfall/api`. Each is imported on first use, so `import rankfall` takes milliseconds.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankfall.api.law import Law as Law
    from rankfall.api.law import collapse_law as collapse_law
    from rankfall.api.order import Order as Order
    from rankfall.api.order import order_of_contraction as order_of_contraction
    from rankfall.api.residuals import Residuals as Residuals
    from rankfall.api.residuals import residuals as residuals
    from rankfall.api.tokens import Attribution as Attribution
    from rankfall.api.tokens import TokenIdentity as TokenIdentity
    from rankfall.api.tokens import attribution as attribution
    from rankfall.api.tokens import token_identity as token_identity
    from rankfall.watch.start import watch as watch

__version__ = "0.3.0"

PUBLIC = {
    "residuals": "rankfall.api.residuals",
    "Residuals": "rankfall.api.residuals",
    "order_of_contraction": "rankfall.api.order",
    "Order": "rankfall.api.order",
    "collapse_law": "rankfall.api.law",
    "Law": "rankfall.api.law",
    "token_identity": "rankfall.api.tokens",
    "TokenIdentity": "rankfall.api.tokens",
    "attribution": "rankfall.api.tokens",
    "Attribution": "rankfall.api.tokens",
}
ROOMS = ("watch",)  # modules that are public as they are
__all__ = [
    "Attribution",
    "Law",
    "Order",
    "Residuals",
    "TokenIdentity",
    "attribution",
    "collapse_law",
    "order_of_contraction",
    "residuals",
    "token_identity",
    "watch",
]


def __getattr__(name: str) -> object:
    if name not in PUBLIC and name not in ROOMS:
        raise AttributeError(f"module 'rankfall' has no attribute {name!r}")
    from importlib import import_module

    if name in ROOMS:
        return import_module(f"rankfall.{name}")
    return getattr(import_module(PUBLIC[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *PUBLIC, *ROOMS]

"""Parts of networks that several experiments share, and the names of masks in the lines of evidence."""

from typing import Any

XAVIER: dict[str, Any] = {"name": "deepnorm", "beta": 1.0}  # Xavier's initialisation if nothing is scaled
PRE_NORM: dict[str, Any] = {"residual": "add", "norm": "layer", "norm_placement": "pre"}
ALL_OR_EARLIER: dict[str, Any] = {"every token": "none", "earlier tokens": "causal"}
MASKS: dict[str, Any] = {**ALL_OR_EARLIER, "next neighbours": {"name": "local", "window": 1}}

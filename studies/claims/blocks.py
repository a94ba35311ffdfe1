"""Parts of networks that several experiments share."""

from typing import Any

XAVIER: dict[str, Any] = {"name": "deepnorm", "beta": 1.0}  # Xavier's initialisation if nothing is scaled
PRE_NORM: dict[str, Any] = {"residual": "add", "norm": "layer", "norm_placement": "pre"}

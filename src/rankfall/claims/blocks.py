"""Parts of networks that several experiments have."""

from typing import Any

XAVIER: dict[str, Any] = {"name": "deepnorm", "beta": 1.0}  # Xavier's start where nothing is scaled
PRE_NORM: dict[str, Any] = {"residual": "add", "norm": "layer", "norm_placement": "pre"}

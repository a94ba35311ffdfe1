from typing import Any

from studies.claims.parts import XAVIER

NAME = "deep_norm"
GRADIENT = "gradient of the value map over that of the last layer, by layer"
COSINE = "cosine of two tokens after the last layer, by layers"
DEEP, POST, PRE = "DeepNorm", "norms after, plain skips", "norms before, plain skips"
KINDS: dict[str, dict[str, Any]] = {
    DEEP: {"residual": "deepnorm", "init": "deepnorm"},
    POST: {"residual": "add", "init": XAVIER},
    PRE: {"residual": "add", "init": XAVIER, "norm_placement": "pre"},
}

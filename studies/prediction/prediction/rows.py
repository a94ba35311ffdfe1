"""Name the predictors of a network: the parts of its architecture, and numbers from measures before training, each with its table."""

from rankfall import ARCHITECTURE_PARTS

PARTS = {**ARCHITECTURE_PARTS, "init": "how initial values are drawn"}  # from the configuration, without a measurement
BIRTH = {  # predictor: its table, and its meaning
    "residual": ("states", "log10 of |res(X)| / |X| after the last layer"),
    "cosine": ("states", "mean cosine between tokens after the last layer"),
    "stable_rank": ("states", "sum s^2 / max s^2 of the states after the last layer"),
    "norm_growth": ("states", "log10 of the states' root mean square after the last layer over that before the first"),
    "gradient_queries": (
        "gradients",
        "mean over layers of log10 of the norm of the loss's gradient by the weights of queries",
    ),
    "gradient_keys": ("gradients", "the same by those of keys"),
    "gradient_values": ("gradients", "the same by those of values"),
    "gradient_ratio": ("gradients", "log10 of queries' gradients over values', mean over layers"),
    "gradient_growth": (
        "gradients",
        "log10 of the gradient by what enters the last layer over that by what enters the first: below 0 it grows on its way back",
    ),
    "loss": ("gradients", "the loss at birth"),
    "entropy": ("attention_weights", "entropy of rows of attention weights, mean over rows, heads and layers"),
    "own_share": ("attribution", "share of a token's state after the last layer that comes from its own input"),
    "order": ("orders", "order of contraction of the attention by itself"),
    "distinct_rows": ("probe", "share of n equal tokens that random weights tell apart"),
}


def column(predictor: str) -> str:
    """Return the name of a predictor's column in the table `prediction`."""
    return f"birth_{predictor}"

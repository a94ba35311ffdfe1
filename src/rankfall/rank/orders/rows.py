"""Selection of rows on attention alone, and the block that the table names for a network."""

BARE = "attention alone"
NEAR = 0.1  # orders that differ by less count as equal
ORDER = {"quantity": "res", "biases": True}
OF_ATTENTION = {**ORDER, "block": BARE}
PLAIN = {"position": "none", "mask": "none", "sentinels": "none"}  # no position, mask or sentinel
BLOCKS = {  # (residual, norm, norm placement, mlp) -> the block of the table `orders`
    ("none", "none", "", "none"): BARE,
    ("none", "none", "", "gelu"): "MLP",
    ("none", "layer", "post", "none"): "post-norm",
    ("none", "layer", "pre", "none"): "pre-norm",
    ("none", "rms", "post", "none"): "RMS norm",
    ("none", "column", "post", "none"): "column norm",
    ("add", "none", "", "none"): "skip",
    ("add", "layer", "post", "none"): "skip, post-norm",
    ("add", "layer", "pre", "none"): "skip, pre-norm",
    ("add", "layer", "post", "gelu"): "transformer",
    ("add", "layer", "pre", "gelu"): "pre-norm transformer",
    ("add", "rms", "pre", "swiglu"): "decoder",
}

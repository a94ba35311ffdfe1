"""The blocks of the table of orders: what surrounds the attention."""

BARE = "attention alone"
BLOCKS = {  # name -> residual, norm, norm placement, mlp
    BARE: ("none", "none", "", "none"),
    "MLP": ("none", "none", "", "gelu"),
    "post-norm": ("none", "layer", "post", "none"),
    "pre-norm": ("none", "layer", "pre", "none"),
    "RMS norm": ("none", "rms", "post", "none"),
    "column norm": ("none", "column", "post", "none"),
    "skip": ("add", "none", "", "none"),
    "skip, post-norm": ("add", "layer", "post", "none"),
    "skip, pre-norm": ("add", "layer", "pre", "none"),
    "transformer": ("add", "layer", "post", "gelu"),
    "pre-norm transformer": ("add", "layer", "pre", "gelu"),
    "decoder": ("add", "rms", "pre", "swiglu"),
}

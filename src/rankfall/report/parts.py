"""The parts that distinguish the designs of networks in a report."""

MADE_OF = {
    "block": "how attention and MLP are put together",
    "attention": "how tokens are mixed",
    "normaliser": "what turns scores into attention weights; null: nothing reads it",
    "position": "how places enter",
    "mask": "which pairs of tokens may attend",
    "residual": "how a sublayer's output is combined with its input",
    "mlp": "the feed-forward sublayer",
    "mlp_residual": "how the MLP's output is combined with its input; null: there is none",
    "norm": "normalisation of states",
    "norm_placement": "where the norm stands",
    "sentinels": "extra tokens that carry no input",
}
OTHERS = ("init",)  # also distinguishes variants, but is not a column

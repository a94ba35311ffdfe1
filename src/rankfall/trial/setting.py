"""The network for which a component is tried: the sizes of a cell's, small where they cost most."""

from dataclasses import dataclass, fields

from rankfall.nets.primitives import Sizes

DEPTH = 2  # stands for any
MEMBERS = SAMPLES = 3
# Longer sequences are cut to these, for all members and samples together:
MOST_SCORES = 2**20  # numbers in the scores of all heads
MOST_PRODUCTS = 2**26  # of a token's features with a matrix
MOST_SYMBOLS = 100  # of a vocabulary, or classes


@dataclass(frozen=True)
class Surroundings:
    """What a kind of component may be told of the network around it; `kinds.py` says which kind reads what."""

    width: int = 8
    heads: int = 2
    head_width: int = 4
    mlp_width: int = 16
    tokens: int = 6  # without sentinels
    sentinels: int = 0
    size_in: int = 5
    size_out: int = 3
    inputs: str = "vectors"  # or "tokens"
    masked: bool = True  # whether scores may be -inf
    trained: bool = True  # whether gradients are needed
    placement: str = "post"  # of the norms in a block
    mlp: bool = True  # whether the block has one
    epochs: int = 3

    @property
    def length(self) -> int:
        """Tokens in a sequence, sentinels included."""
        return self.tokens + self.sentinels

    def sizes(self, members: int) -> Sizes:
        named = {one.name: getattr(self, one.name) for one in fields(Sizes) if hasattr(self, one.name)}
        return Sizes(**named | {"members": members, "depth": DEPTH, "layer": 1})


def longest(tokens: int, heads: int, width: int, mlp_width: int) -> int:
    """So many of the tokens as a trial can take in milliseconds, but two if there are two."""
    each = MEMBERS * SAMPLES
    by_scores, by_products = (MOST_SCORES / (each * heads)) ** 0.5, MOST_PRODUCTS / (each * width * mlp_width)
    return min(tokens, max(2, int(min(by_scores, by_products))))

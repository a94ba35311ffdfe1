"""The sizes of the network for which a component is tried: those of a cell, with fewer tokens where they cost most."""

from dataclasses import dataclass, fields

from rankfall.nets.primitives import Sizes

DEPTH = 2  # layers, which stand for any depth
MEMBERS = SAMPLES = 3  # a first with large numbers, a last to compare, and a neighbour of both
# `longest` cuts longer sequences to these limits, for all members and samples together, so that a trial takes milliseconds:
MOST_SCORES = 2**20  # numbers in the scores of all heads
MOST_PRODUCTS = 2**26  # products of tokens' features with a matrix
MOST_SYMBOLS = 100  # symbols of a vocabulary, or classes


@dataclass(frozen=True)
class Surroundings:
    """The facts about the surrounding network that a trial may depend on; `kinds.py` says which kind reads which."""

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
        """Return the sizes of a stack with so many members."""
        named = {f.name: getattr(self, f.name) for f in fields(Sizes) if hasattr(self, f.name)}
        return Sizes(**named | {"members": members, "depth": DEPTH, "layer": 1})


def longest(tokens: int, heads: int, width: int, mlp_width: int) -> int:
    """Return the number of tokens that a trial can compute in milliseconds: at most `tokens`, and two or more if there are two."""
    networks = MEMBERS * SAMPLES
    by_scores, by_products = (MOST_SCORES / (networks * heads)) ** 0.5, MOST_PRODUCTS / (networks * width * mlp_width)
    return min(tokens, max(2, int(min(by_scores, by_products))))

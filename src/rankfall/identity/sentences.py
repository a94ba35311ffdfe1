"""The sentences that tokens are identified in: what one network makes of them, split by sentence."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torch import Tensor

from rankfall.identity.recovery import KnownTokens

SHARES = (0.7, 0.15)  # of the sentences, to train on and to validate on; the rest is tested
FEWEST = 6  # sentences, of which one is validated on and one is tested


@dataclass(frozen=True)
class Sentences:
    """Words and states of one network: first the sentences to train probes on, then those to validate on, then those to test on."""

    seed: int
    words: Tensor  # (N, T)
    layers: list[
        int
    ]  # which layers' states are here; first 0, what enters the first block: embeddings that states are mapped back to
    states: Tensor  # (len(layers), N, T, D)
    places: list[int]  # where tokens are compared with the whole vocabulary; none: nowhere
    vocabulary: Callable[[], Iterable[Tensor]]  # embeddings of all words (V, D) at each of the places

    @property
    def train(self) -> int:
        """How many sentences to train on."""
        return round(SHARES[0] * len(self.words))

    @property
    def known(self) -> int:
        """How many sentences to train or to validate on."""
        return self.train + round(SHARES[1] * len(self.words))

    def tested(self, layer: int) -> Tensor:
        """(S, T, D)"""
        return self.states[self.layers.index(layer), self.known :]

    @property
    def source(self) -> KnownTokens:
        """What probes are trained on: all layers but 0."""
        tokens = self.train * self.words.shape[1]
        return KnownTokens(
            self.seed, self.states[1:, : self.known].flatten(1, 2), self.states[0, : self.known].flatten(0, 1), tokens
        )

    def by_position(self) -> Tensor:
        """(S, T, D): the guess that knows only the position: the mean embedding there over the sentences to train on."""
        mean = self.states[0, : self.train].double().mean(0)
        return mean.expand(len(self.words) - self.known, -1, -1)


def spread(count: int, length: int) -> list[int]:
    """`count` places, evenly spread over a sentence; all where there are not more."""
    count = min(count, length)
    return [(2 * number + 1) * length // (2 * count) for number in range(count)]

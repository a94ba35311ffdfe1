"""Sentences in which tokens are identified: the states of one network, split by sentence."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torch import Tensor

from rankfall.identity.recovery import KnownTokens

SHARES = (0.7, 0.15)  # shares of sentences to train on and to validate on; the rest is the test set
FEWEST = 6  # sentences: with fewer, none would be left to validate or to test on


@dataclass(frozen=True)
class Sentences:
    """Words and states of one network: first the sentences to train probes on, then those to validate on, then those to test on."""

    seed: int
    words: Tensor  # (N, T)
    layers: list[
        int
    ]  # layers of `states`; the first is 0, the input of the first block: embeddings that states are mapped back to
    states: Tensor  # (len(layers), N, T, D)
    places: list[int]  # positions at which tokens are compared with the whole vocabulary; may be empty
    vocabulary: Callable[[], Iterable[Tensor]]  # embeddings of all words (V, D) at each of the places

    @property
    def train(self) -> int:
        """Number of sentences to train on."""
        return round(SHARES[0] * len(self.words))

    @property
    def known(self) -> int:
        """Number of sentences to train or to validate on."""
        return self.train + round(SHARES[1] * len(self.words))

    def tested(self, layer: int) -> Tensor:
        """Return the tested states (S, T, D) of a layer."""
        return self.states[self.layers.index(layer), self.known :]

    @property
    def source(self) -> KnownTokens:
        """Training data of the probes: all layers but 0."""
        tokens = self.train * self.words.shape[1]
        return KnownTokens(
            self.seed, self.states[1:, : self.known].flatten(1, 2), self.states[0, : self.known].flatten(0, 1), tokens
        )

    def by_position(self) -> Tensor:
        """Return the guess (S, T, D) from the position alone: the mean embedding there over the training sentences."""
        mean = self.states[0, : self.train].double().mean(0)
        return mean.expand(len(self.words) - self.known, -1, -1)


def spread(count: int, length: int) -> list[int]:
    """Return `count` positions, evenly spread over a sentence, or all if there are fewer."""
    count = min(count, length)
    return [(2 * number + 1) * length // (2 * count) for number in range(count)]

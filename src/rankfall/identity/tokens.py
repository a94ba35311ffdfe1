"""Token identifiability: how often a map of a hidden state is nearest to its own token's embedding (Brunner et al. 2020, section 4).

Candidates are the embeddings of the same sentence; those of the words that occur once in the sentence; or the embeddings of all words of
the vocabulary at the token's own position, so that position gives no hint. Repeated words are excluded from the second kind, as queries
and as candidates: without positions their embeddings are equal, and with positions, telling two equal words apart is a question of
position. Candidates that are equally near, as far as rounding can tell, share the token: if m nearest candidates include its own, it
counts 1 / m, the expected value of a random choice among them.

A rate has a confidence interval over sentences (`estimate_rate`).
Tokens of one sentence are not independent observations, since a sentence may be easy or hard as a whole. So the variance of the rate is
taken over sentences (the clustered variance of a ratio of sums). It gives the effective number of independent tokens, which enters
Wilson's interval; this stays within 0 and 1. The interval describes which sentences are tested.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rankfall.identity.probes import KnownTokens, Recipe, Trained, recover
from rankfall.rank.powers import unit
from rankfall.train.loop import Checkpoint

SHARES = (0.7, 0.15)  # shares of sentences to train on and to validate on; the rest is the test set
FEWEST = 6  # sentences: with fewer, none would be left to validate or to test on


@dataclass(frozen=True)
class Sentences:
    """Words and states of one network: first the sentences to train probes on, then those to validate on, then those to test on."""

    seed: int
    words: Tensor  # (N, T)
    layers: list[int]  # layers of `states`; the first is 0, the embeddings that states are mapped back to
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


def spread_positions(count: int, length: int) -> list[int]:
    """Return `count` positions, evenly spread over a sentence, or all if there are fewer."""
    count = min(count, length)
    return [(2 * number + 1) * length // (2 * count) for number in range(count)]


DISTANCES = ("cosine", "l2")
ROUNDING = 64  # two candidates within this many rounding units of a distance's largest terms are equally near


def nearest_shares(
    mapped: Tensor, candidates: Tensor, targets: Tensor, distance: str, allowed: Tensor | None = None
) -> Tensor:
    """Return (..., Q): 1 where candidate `targets` (..., Q) is nearest to a query, 1 / m where it is among m nearest, else 0.

    `mapped` (..., Q, D), `candidates` (..., C, D); `allowed` (..., C) restricts the candidates.
    """
    if distance == "cosine":  # scaling does not change the cosine; squares of small numbers would be zero
        mapped, candidates = unit(mapped, -1), unit(candidates, -1)
    product = mapped @ candidates.transpose(-1, -2)  # (..., Q, C)
    size = candidates.norm(dim=-1).unsqueeze(-2)  # (..., 1, C)
    length = mapped.norm(dim=-1, keepdim=True)  # (..., Q, 1)
    tiny = torch.finfo(mapped.dtype).tiny
    if distance == "cosine":
        near, largest = product / (size * length).clamp_min(tiny), torch.ones_like(length)
    else:  # |g - x|^2 = |g|^2 - 2 (g x - |x|^2 / 2): the bracket is largest for the nearest
        near, largest = product - size.square() / 2, (length * size + size.square()).amax(-1, keepdim=True)
    if allowed is not None:
        near = near.masked_fill(~allowed.unsqueeze(-2), -torch.inf)
    margin = ROUNDING * torch.finfo(mapped.dtype).eps * largest
    nearest = near >= near.amax(-1, keepdim=True) - margin  # (..., Q, C)
    return nearest.gather(-1, targets.unsqueeze(-1)).squeeze(-1).double() / nearest.sum(-1)


NORMAL = 1.959963984540054  # the 97.5% quantile of a normal distribution, for 95% intervals


def estimate_rate(correct: Tensor, asked: Tensor) -> tuple[float, float, float]:
    """Return (rate, low, high) from sums by sentence (S,) of correct tokens and of tokens asked for.

    Where all or none are right, the variance over sentences cannot be estimated, and tokens count as independent.
    """
    total, sentences = float(asked.sum()), len(asked)
    rate = float(correct.sum()) / total
    spread = rate * (1 - rate)
    effective = total
    if spread > 1e-12 and sentences > 1:
        squares = float((correct - rate * asked).double().square().sum())
        variance = sentences / (sentences - 1) * squares / total**2
        # Never more than all tokens: sentences more alike than independent tokens would be are so by chance.
        effective = min(total, spread / variance) if variance > 0 else total
    low, high = wilson(rate, effective)
    return rate, low, high


def wilson(rate: float, count: float) -> tuple[float, float]:
    """Return the range of all shares p with |rate - p| <= z sqrt(p (1 - p) / count)."""
    z2 = NORMAL**2 / count
    middle = (rate + z2 / 2) / (1 + z2)
    half = math.sqrt(z2 * rate * (1 - rate) + z2**2 / 4) / (1 + z2)
    # Rounding may put the ends beyond the rate.
    return min(rate, max(0.0, middle - half)), max(rate, min(1.0, middle + half))


Row = dict[str, Any]
KINDS = ("linear", "mlp")
DISTANCES_AT_ONCE = 2**22  # numbers in a matrix of distances to the vocabulary: 16 MB in float32


@dataclass(frozen=True)
class Mapped:
    """The tested states of a layer under a map. A map that was trained on another layer is tested with fewer candidates and distances."""

    about: Row
    values: Tensor  # (S, T, D), float64

    @property
    def elsewhere(self) -> bool:
        return self.about["trained_layer"] not in (None, self.about["layer"])


def token_rates(
    networks: Sequence[Sentences],
    linear: Recipe,
    hidden: Recipe,
    checkpoint: Checkpoint,
    name: str = "",
    *,
    transfer: bool = True,
) -> list[list[Row]]:
    """Return the rows of each network.

    All networks have the same shapes; their probes form one stack for each kind of map. The names of stacks in the checkpoint end with
    `name`. `transfer`: also apply maps of one layer to the states of every other, tested within sentences by cosine.
    """
    sources = [network.source for network in networks]
    trained = recover(sources, {f"linear{name}": linear, f"mlp{name}": hidden}, checkpoint)
    stacks = dict(zip(KINDS, trained.values()))
    return [
        list(rates_of_maps(network, maps(network, number, stacks, transfer))) for number, network in enumerate(networks)
    ]


@torch.no_grad()
def maps(network: Sentences, index: int, stacks: dict[str, Trained], transfer: bool) -> Iterator[Mapped]:
    """Yield all maps of one network, which has this index in the stacks."""
    untrained = dict.fromkeys(("loss", "trained_layer", "epoch"))
    for layer in network.layers:
        yield Mapped({"layer": layer, "map": "naive"} | untrained, network.tested(layer).double())
    yield Mapped({"layer": None, "map": "position"} | untrained, network.by_position())
    for name, stack in stacks.items():
        for number, probe in enumerate(stack.probes):
            if probe.source != index:
                continue
            trained = network.layers[1 + probe.layer]  # sources start after layer 0
            for layer in network.layers[1:] if transfer and probe.loss == "cosine" else [trained]:
                about = {
                    "layer": layer,
                    "map": name,
                    "loss": probe.loss,
                    "trained_layer": trained,
                    "epoch": probe.epoch,
                }
                yield Mapped(about, stack.map(number, network.tested(layer)).double())


def rates_of_maps(network: Sentences, mapped: Iterable[Mapped]) -> Iterator[Row]:
    """Yield rates of all maps under each distance, among the candidates of each kind."""
    words, embeddings = network.words[network.known :], network.tested(0).double()
    unique = (words.unsqueeze(-1) == words.unsqueeze(-2)).sum(-1) == 1  # words that occur once in their sentence
    targets = torch.arange(words.shape[1]).expand_as(words)
    kept: list[tuple[Row, Tensor]] = []
    for mapping in mapped:
        for distance in ("cosine",) if mapping.elsewhere else DISTANCES:
            correct = nearest_shares(mapping.values, embeddings, targets, distance)
            yield mapping.about | rate("sentence", distance, correct.sum(1), torch.full((len(words),), words.shape[1]))
            if not mapping.elsewhere:
                correct = nearest_shares(mapping.values, embeddings, targets, distance, unique)
                correct = correct.masked_fill(~unique, 0.0)
                yield mapping.about | rate("distinct", distance, correct.sum(1), unique.sum(1))
        if network.places and not mapping.elsewhere:
            kept.append((mapping.about, mapping.values[:, network.places].float()))
    if kept:
        yield from among_all_words(network, words, kept)


def among_all_words(network: Sentences, words: Tensor, mapped: Sequence[tuple[Row, Tensor]]) -> Iterator[Row]:
    """Yield rates among the embeddings of the whole vocabulary at the token's position.

    `mapped` are tokens (S, P, D) at the positions.
    """
    correct = {distance: torch.zeros(len(mapped), len(words), dtype=torch.float64) for distance in DISTANCES}
    size = 0
    for number, (place, embeddings) in enumerate(zip(network.places, network.vocabulary(), strict=True)):
        queries = torch.cat([values[:, number] for _, values in mapped])  # (M*S, D), all maps at once
        targets, size = words[:, place].repeat(len(mapped)), len(embeddings)
        few = max(1, DISTANCES_AT_ONCE // size)  # queries at a time, so that the distances fit into memory
        for distance in DISTANCES:
            parts = zip(queries.split(few), targets.split(few))
            near = [nearest_shares(part, embeddings.float(), target, distance) for part, target in parts]
            correct[distance] += torch.cat(near).view(len(mapped), -1)
    asked = torch.full((len(words),), len(network.places))
    for number, (about, _) in enumerate(mapped):
        for distance in DISTANCES:
            yield about | rate("vocabulary", distance, correct[distance][number], asked, size)


def rate(candidates: str, distance: str, correct: Tensor, asked: Tensor, size: int | None = None) -> Row:
    """Return a rate from sums by sentence (S,). `size`: number of candidates, by default the tokens that are asked for."""
    known = asked > 0
    tokens, sentences = int(asked.sum()), int(known.sum())
    value, low, high = estimate_rate(correct[known], asked[known]) if tokens else (None, None, None)
    # A guess among as many candidates as tokens gets one token of a sentence right.
    chance = None if not tokens else sentences / tokens if size is None else 1 / size
    about = {"candidates": candidates, "distance": distance, "rate": value, "low": low, "high": high, "chance": chance}
    reason = "" if tokens else "no word occurs once in its sentence"
    return about | {"tokens": tokens, "sentences": sentences, "rate_reason": reason}

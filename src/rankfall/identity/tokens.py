"""Token identifiability: how often a map of a hidden state is nearest to the embedding of its own token, layer by layer."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rankfall.identity.nearest import DISTANCES, estimate_rate, once, shares
from rankfall.identity.recovery import Recipe, Trained, recover
from rankfall.identity.sentences import Sentences
from rankfall.train.loop import Checkpoint

Row = dict[str, Any]
KINDS = ("linear", "mlp")
DISTANCES_AT_ONCE = 2**22


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
) -> list[Row]:
    """Return rows of all networks, where `member` is the index of the network.

    All networks have the same shapes; their probes form one stack for each kind of map. The names of stacks in the checkpoint end with
    `name`. `transfer`: also apply maps of one layer to the states of every other, tested within sentences by cosine.
    """
    sources = [one.source for one in networks]
    trained = recover(sources, {f"linear{name}": linear, f"mlp{name}": hidden}, checkpoint)
    stacks = dict(zip(KINDS, trained.values()))
    return [
        {"member": member} | row
        for member, one in enumerate(networks)
        for row in rates_of_maps(one, maps(one, member, stacks, transfer))
    ]


@torch.no_grad()
def maps(one: Sentences, member: int, stacks: dict[str, Trained], transfer: bool) -> Iterator[Mapped]:
    """Yield all maps of one network, which is network `member` of the stacks."""
    nothing = dict.fromkeys(("loss", "trained_layer", "epoch"))
    for layer in one.layers:
        yield Mapped({"layer": layer, "map": "naive"} | nothing, one.tested(layer).double())
    yield Mapped({"layer": None, "map": "position"} | nothing, one.by_position())
    for name, stack in stacks.items():
        for number, probe in enumerate(stack.probes):
            if probe.source != member:
                continue
            own = one.layers[1 + probe.layer]  # sources start after layer 0
            for layer in one.layers[1:] if transfer and probe.loss == "cosine" else [own]:
                about = {"layer": layer, "map": name, "loss": probe.loss, "trained_layer": own, "epoch": probe.epoch}
                yield Mapped(about, stack.map(number, one.tested(layer)).double())


def rates_of_maps(one: Sentences, mapped: Iterable[Mapped]) -> Iterator[Row]:
    """Yield rates of all maps under each distance, among the candidates of each kind."""
    words, embeddings = one.words[one.known :], one.tested(0).double()
    unique = once(words)
    own = torch.arange(words.shape[1]).expand_as(words)
    kept: list[tuple[Row, Tensor]] = []
    for each in mapped:
        for distance in ("cosine",) if each.elsewhere else DISTANCES:
            right = shares(each.values, embeddings, own, distance)
            yield each.about | rate("sentence", distance, right.sum(1), torch.full((len(words),), words.shape[1]))
            if not each.elsewhere:
                right = shares(each.values, embeddings, own, distance, unique).masked_fill(~unique, 0.0)
                yield each.about | rate("distinct", distance, right.sum(1), unique.sum(1))
        if one.places and not each.elsewhere:
            kept.append((each.about, each.values[:, one.places].float()))
    if kept:
        yield from among_all_words(one, words, kept)


def among_all_words(one: Sentences, words: Tensor, mapped: Sequence[tuple[Row, Tensor]]) -> Iterator[Row]:
    """Yield rates among the embeddings of the whole vocabulary at the token's position.

    `mapped` are tokens (S, P, D) at the positions.
    """
    right = {distance: torch.zeros(len(mapped), len(words), dtype=torch.float64) for distance in DISTANCES}
    size = 0
    for number, (place, every) in enumerate(zip(one.places, one.vocabulary(), strict=True)):
        queries = torch.cat([values[:, number] for _, values in mapped])  # (M*S, D), all maps at once
        own, size = words[:, place].repeat(len(mapped)), len(every)
        for distance in DISTANCES:
            found = [shares(*part, distance) for part in parts(queries, every.float(), own)]
            right[distance] += torch.cat(found).view(len(mapped), -1)
    asked = torch.full((len(words),), len(one.places))
    for number, (about, _) in enumerate(mapped):
        for distance in DISTANCES:
            yield about | rate("vocabulary", distance, right[distance][number], asked, size)


def parts(queries: Tensor, every: Tensor, own: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield chunks of queries (Q', D), with all candidates and the indices of the own ones, so that the distances fit into memory."""
    size = max(1, DISTANCES_AT_ONCE // len(every))
    for some, which in zip(queries.split(size), own.split(size)):
        yield some, every, which


def rate(candidates: str, distance: str, right: Tensor, asked: Tensor, size: int | None = None) -> Row:
    """Return a rate from sums by sentence (S,). `size`: number of candidates, by default the tokens that are asked for."""
    about = {"candidates": candidates, "distance": distance}
    some = asked > 0
    tokens, sentences = int(asked.sum()), int(some.sum())
    if not tokens:
        nothing: Row = dict.fromkeys(("rate", "low", "high", "chance"))
        return about | nothing | {"tokens": 0, "sentences": 0, "rate_reason": "no word occurs once in its sentence"}
    value, low, high = estimate_rate(right[some], asked[some])
    # A guess among as many candidates as tokens gets one token of a sentence right.
    chance = sentences / tokens if size is None else 1 / size
    numbers = {"rate": value, "low": low, "high": high, "chance": chance, "tokens": tokens, "sentences": sentences}
    return about | numbers | {"rate_reason": ""}

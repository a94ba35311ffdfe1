"""Dropout whose masks depend on (seed, place in the network, step) only, so that a member drops the same units in any stack and after any
resume.

Masks come from Philox, a counter-based generator: the key is the seed's, two words of the counter hold place and step, and the other two
run through the elements. Sixteen bits decide an element, so rates are rounded to 1 / 65536, and the scale matches the rounded rate. On a
processor NumPy makes them, member by member; on other devices they are made there, for all members at once, and are the same bits.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rankfall.streams import words
from rankfall.train.device import waits
from rankfall.train.philox import keys_of, random_raw, to_signed

LEVELS = 65536


class SeededDropout:
    """Masks from NumPy."""

    def __init__(self, seeds: Sequence[int], rate: float) -> None:
        self.threshold = np.uint16(round(rate * LEVELS))
        self.scale = LEVELS / (LEVELS - int(self.threshold))
        self.keys = [np.array(words(seed, "dropout"), dtype=np.uint64) for seed in seeds]
        self.step = 0

    def at(self, step: int) -> "SeededDropout":
        """The same with the masks of a step."""
        self.step = step
        return self

    def __call__(self, x: Tensor, site: str) -> Tensor:
        if self.threshold == 0:
            return x
        size = x[0].numel()
        keep = np.empty((len(self.keys), size), dtype=bool)
        counter = np.array([0, 0, words(site)[0], self.step], dtype=np.uint64)
        for member, key in enumerate(self.keys):
            bits = np.random.Philox(key=key, counter=counter).random_raw(-(-size // 4))  # four elements a word
            np.greater_equal(bits.view(np.uint16)[:size], self.threshold, out=keep[member])
        mask = torch.from_numpy(keep).to(x.device).to(x.dtype).view(x.shape)
        return x * mask.mul_(self.scale)


def mask_words(keys: Tensor, place: int, step: Tensor, count: int) -> Tensor:
    """Random words (K, count) of a place in the network at a step."""
    return random_raw(keys, (0, 0, place % 2**64, step), count)


# A compiler of steps takes it for one operation: it would spend a minute on those of each mask.
torch.library.custom_op("rankfall::mask_words", mask_words, mutates_args=()).register_fake(
    lambda keys, place, step, count: keys.new_empty(len(keys), count)
)


class DeviceDropout:
    """The same masks, made on the device. The step is a tensor there, so that a captured step has new masks in every replay."""

    def __init__(self, seeds: Sequence[int], rate: float, device: torch.device) -> None:
        self.threshold = round(rate * LEVELS)
        self.scale = LEVELS / (LEVELS - self.threshold)
        self.keys = keys_of([words(seed, "dropout") for seed in seeds], device)  # (K, 2)
        self.step = torch.zeros((), dtype=torch.int64, device=device)
        self.places: dict[str, int] = {}

    def at(self, step: int) -> "DeviceDropout":
        """The same with the masks of a step."""
        self.step.fill_(step)
        return self

    def __call__(self, x: Tensor, site: str) -> Tensor:
        if self.threshold == 0:
            return x
        size = x[0].numel()
        if site not in self.places:  # looked up, because a compiler of steps cannot follow a hash
            self.places[site] = to_signed(words(site)[0])
        draw = torch.ops.rankfall.mask_words if torch.compiler.is_compiling() else mask_words
        bits = draw(self.keys, self.places[site], self.step, -(-size // 16) * 4)  # (K, words), four elements a word
        # int16 for want of unsigned comparisons: with the first bit turned round they are in the order of unsigned ones.
        keep = (bits.view(torch.int16)[:, :size] ^ -(LEVELS // 2)) >= self.threshold - LEVELS // 2
        scale = torch.full((), self.scale, dtype=x.dtype, device=x.device)
        return x * (keep * scale).view(x.shape)


def dropout_of(seeds: Sequence[int], rate: float, device: torch.device) -> SeededDropout | DeviceDropout | None:
    """What is quickest on the device; None where nothing is dropped."""
    if rate == 0:
        return None
    return DeviceDropout(seeds, rate, device) if waits(device) else SeededDropout(seeds, rate)

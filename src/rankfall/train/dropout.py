"""Dropout whose masks depend only on (seed, place in the network, step), so that a member drops the same units in any stack and after any
resume.

Masks come from Philox, a counter-based generator: the key is the seed's, two words of the counter hold place and step, and the other two
count the elements. Sixteen bits decide an element, so rates are rounded to 1 / 65536, and the scale matches the rounded rate. On a CPU
NumPy generates them, member by member. On other devices they are generated there, for all members at once, with the same bits.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rankfall.random_streams import words
from rankfall.train.device import waits
from rankfall.train.philox import keys_of, random_raw, to_signed

LEVELS = 65536  # of a rate: sixteen bits decide an element


class SeededDropout:
    """Dropout with masks from NumPy."""

    def __init__(self, seeds: Sequence[int], rate: float) -> None:
        self.threshold = np.uint16(round(rate * LEVELS))
        self.scale = LEVELS / (LEVELS - int(self.threshold))
        self.keys = [np.array(words(seed, "dropout"), dtype=np.uint64) for seed in seeds]
        self.step = 0

    def at(self, step: int) -> "SeededDropout":
        """Set the step of the masks, and return the dropout."""
        self.step = step
        return self

    def __call__(self, x: Tensor, site: str) -> Tensor:
        size = x[0].numel()
        keep = np.empty((len(self.keys), size), dtype=bool)
        counter = np.array([0, 0, words(site)[0], self.step], dtype=np.uint64)
        for member, key in enumerate(self.keys):
            bits = np.random.Philox(key=key, counter=counter).random_raw(-(-size // 4))  # four elements per word
            np.greater_equal(bits.view(np.uint16)[:size], self.threshold, out=keep[member])
        mask = torch.from_numpy(keep).to(x.device).to(x.dtype).view(x.shape)
        return x * mask.mul_(self.scale)


def mask_words(keys: Tensor, place: int, step: Tensor, count: int) -> Tensor:
    """Return random words (K, count) of a place in the network at a step."""
    return random_raw(keys, (0, 0, place % 2**64, step), count)


# A compiler of steps treats it as one operation: otherwise it would spend a minute on the operations of each mask.
torch.library.custom_op("rankfall::mask_words", mask_words, mutates_args=()).register_fake(
    lambda keys, place, step, count: keys.new_empty(len(keys), count)
)


class DeviceDropout:
    """Dropout with the same masks, generated on the device.

    The step is a tensor there, so that each replay of a captured step has new masks.
    """

    def __init__(self, seeds: Sequence[int], rate: float, device: torch.device) -> None:
        self.threshold = round(rate * LEVELS)
        self.scale = LEVELS / (LEVELS - self.threshold)
        self.keys = keys_of([words(seed, "dropout") for seed in seeds], device)  # (K, 2)
        self.step = torch.zeros((), dtype=torch.int64, device=device)
        self.places: dict[str, int] = {}

    def at(self, step: int) -> "DeviceDropout":
        """Set the step of the masks, and return the dropout."""
        self.step.fill_(step)
        return self

    def __call__(self, x: Tensor, site: str) -> Tensor:
        size = x[0].numel()
        if site not in self.places:  # stored, because a compiler of steps cannot trace a hash
            self.places[site] = to_signed(words(site)[0])
        draw = torch.ops.rankfall.mask_words if torch.compiler.is_compiling() else mask_words
        bits = draw(self.keys, self.places[site], self.step, -(-size // 16) * 4)  # (K, words), four elements per word
        # int16, since there are no unsigned comparisons: with the first bit flipped the order is that of the unsigned values.
        keep = (bits.view(torch.int16)[:, :size] ^ -(LEVELS // 2)) >= self.threshold - LEVELS // 2
        scale = torch.full((), self.scale, dtype=x.dtype, device=x.device)
        return x * (keep * scale).view(x.shape)


def dropout_of(seeds: Sequence[int], rate: float, device: torch.device) -> SeededDropout | DeviceDropout | None:
    """Return the fastest dropout for the device, or None for rate 0."""
    if rate == 0:
        return None
    return DeviceDropout(seeds, rate, device) if waits(device) else SeededDropout(seeds, rate)

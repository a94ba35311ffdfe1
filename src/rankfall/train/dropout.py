"""Dropout whose masks depend on (seed, place in the network, step) only, so that a member drops the same units in any stack and after any
resume.

Masks come from Philox, a counter-based generator: the key is the seed's, two words of the counter hold place and step, and the other two
run through the elements. Sixteen bits decide an element, so rates are rounded to 1 / 65536, and the scale matches the rounded rate.
"""

import numpy as np
import torch
from torch import Tensor

from rankfall.streams import words


class SeededDropout:
    def __init__(self, seeds: list[int], rate: float) -> None:
        self.threshold = np.uint16(round(rate * 65536))
        self.scale = 65536 / (65536 - int(self.threshold))
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

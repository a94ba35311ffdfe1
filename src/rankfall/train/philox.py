"""Philox 4x64-10 (Salmon et al. 2011) for many keys at once, in tensors on any device: the bits of `numpy.random.Philox`.

A word depends only on key and counter, so all words of all members are generated at once, where they are used. PyTorch has no unsigned
words, so an int64 holds the 64 bits. Sums and products wrap around, and the upper half of a product is computed from products of 32-bit
halves. On a GPU each of these 400 tensor operations would read and write memory. There one kernel generates the same words. PyTorch
compiles it from the text below on the first call, and it is used only if it then gives the same bits.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor

from rankfall.train.device import to_device

MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
STEPS = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)  # increments of the two words of the key per round
ROUNDS = 10
LOW = 0xFFFFFFFF  # the lower 32 bits of a word
Four = tuple[Tensor, Tensor, Tensor, Tensor]

KERNEL = """template <typename T>
void philox(T x0, T x1, T x2, T x3, T k0, T k1, T& w0, T& w1, T& w2, T& w3) {
  typedef unsigned long long U;
  U a = (U)x0, b = (U)x1, c = (U)x2, d = (U)x3, k = (U)k0, l = (U)k1;
  for (int round = 0; round != 10; ++round) {
    U p = 0xD2E7470EE14C6C93ULL * a, q = 0xCA5A826395121157ULL * c;
    U high_p = __umul64hi(0xD2E7470EE14C6C93ULL, a), high_q = __umul64hi(0xCA5A826395121157ULL, c);
    a = high_q ^ b ^ k; b = q; c = high_p ^ d ^ l; d = p;
    k += 0x9E3779B97F4A7C15ULL; l += 0xBB67AE8584CAA73BULL;
  }
  w0 = (T)a; w1 = (T)b; w2 = (T)c; w3 = (T)d;
}"""


def random_raw(keys: Tensor, counter: Sequence[int | Tensor], count: int) -> Tensor:
    """Return `numpy.random.Philox(key, counter).random_raw(count)` of each key (K, 2), as (K, count).

    The first two words of the counter are numbers. The others may be tensors () on the device, so that replays of a captured step can
    change them.
    """
    blocks = -(-count // 4)
    make = kernel(keys.device) if keys.device.type == "cuda" else rounds
    four = make(*count_blocks(counter, blocks, keys.device), keys[:, :1], keys[:, 1:])  # each (K, blocks)
    return torch.stack(four, -1).flatten(1)[:, :count]


def keys_of(words: Sequence[tuple[int, int]], device: torch.device) -> Tensor:
    """Return keys (K, 2) from pairs of 64-bit words."""
    keys = torch.tensor([[to_signed(word) for word in pair] for pair in words], dtype=torch.int64)
    return to_device(keys, device)


def count_blocks(counter: Sequence[int | Tensor], blocks: int, device: torch.device) -> Four:
    """Return the four words of the counters of consecutive blocks, each (blocks,) or ().

    The counters start one above `counter`, as in NumPy, and carry into the next word.
    """
    first, second, *high = counter
    assert isinstance(first, int) and isinstance(second, int)
    x0 = torch.arange(1, blocks + 1, device=device) + to_signed(first)
    words = [
        word if isinstance(word, Tensor) else torch.full((), to_signed(word), dtype=torch.int64, device=device)
        for word in (second, *high)
    ]
    room = 2**64 - first  # blocks until the first word is zero again
    if room <= blocks:
        carry = torch.arange(1, blocks + 1, device=device) >= room
        for at, word in enumerate(words):
            words[at] = word + carry
            carry = carry & (words[at] == 0)
    return x0, words[0], words[1], words[2]


def rounds(x0: Tensor, x1: Tensor, x2: Tensor, x3: Tensor, k0: Tensor, k1: Tensor) -> Four:
    """Return four words for each counter and key, with operations that every device supports. All arguments broadcast."""
    for _ in range(ROUNDS):
        (high0, low0), (high1, low1) = product(MULTIPLIERS[0], x0), product(MULTIPLIERS[1], x2)
        x0, x1, x2, x3 = high1 ^ x1 ^ k0, low1, high0 ^ x3 ^ k1, low0
        k0, k1 = k0 + to_signed(STEPS[0]), k1 + to_signed(STEPS[1])
    return x0, x1, x2, x3


def product(a: int, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return the upper and lower 64 bits of the product of two unsigned words."""
    low_a, high_a, low_b, high_b = a & LOW, a >> 32, b & LOW, upper(b)
    cross = high_a * low_b + upper(low_a * low_b)  # below 2**64, so nothing is lost
    return high_a * high_b + upper(cross) + upper(low_a * high_b + (cross & LOW)), to_signed(a) * b


def upper(word: Tensor) -> Tensor:
    """Return the upper 32 bits. >> alone would repeat the sign."""
    return (word >> 32) & LOW


def to_signed(word: int) -> int:
    """Return the int64 with the bits of an unsigned word."""
    return word - 2**64 if word >= 2**63 else word


@cache
def kernel(device: torch.device) -> Callable[..., Four]:
    """Return `rounds` as one kernel of a GPU, or `rounds` itself if that fails."""
    try:
        compiled: Callable[..., Four] = torch.cuda.jiterator._create_multi_output_jit_fn(KERNEL, num_outputs=4)
        return verify(compiled, device)
    except Exception as error:
        warnings.warn(f"random words are made slowly on {device}: {error}", stacklevel=2)
        return rounds


def verify(function: Callable[..., Four], device: torch.device) -> Callable[..., Four]:
    """Return the function after checking that it gives the bits of `rounds`."""
    keys = torch.arange(-3, 3, device=device).view(3, 2, 1) * 0x1234567812345678
    arguments = (*count_blocks((5, 2**64 - 1, 2**63 + 7, 11), 5, device), keys[:, 0], keys[:, 1])
    if not all(torch.equal(a, b) for a, b in zip(function(*arguments), rounds(*arguments), strict=True)):
        raise RuntimeError("the compiled kernel of Philox gives other bits")
    return function


def uniform(words: Tensor) -> Tensor:
    """Return numbers in [0, 1), as `Generator.random` derives them from the same words."""
    return ((words >> 11) & (2**53 - 1)).double() * 2.0**-53


def integers(words: Tensor, below: int, count: int) -> Tensor:
    """Return the first `count` numbers (K, count) of `Generator.integers(below)` from words (K, n), each of which is two draws.

    A draw that would favour some numbers is rejected (Lemire 2019), so there must be more than count / 2 words.
    """
    draws = torch.stack([words & LOW, upper(words)], -1).flatten(1)  # (K, 2n)
    scaled = draws * below
    accepted = (scaled & LOW) >= (2**32 - below) % below
    place = accepted.cumsum(1) - 1
    place = torch.where(accepted & (place < count), place, count)  # surplus draws go behind the end
    return scaled.new_zeros(len(words), count + 1).scatter_(1, place, upper(scaled))[:, :count]

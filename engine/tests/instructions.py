"""Single instructions of the machine, run on arrays."""

import struct
from typing import Any

import numpy as np

from thousandfold import codes
from thousandfold.memory import room
from thousandfold.operations import CODES
from thousandfold.runtime import Machine

X, Y, Z, OUT = codes.PARAM, codes.INPUT, codes.TARGET, codes.ARENA
MACHINES: dict[str, Machine] = {}


def bits(number: float) -> int:
    return int(struct.unpack("q", struct.pack("d", number))[0])


def run(dtype: str, kind: int, body: list[Any], buffers: dict[int, np.ndarray], size: int) -> np.ndarray:
    """What an instruction leaves in OUT, which holds -7 where it writes nothing; other buffers are given, and stay as they are."""
    machine = MACHINES.setdefault(dtype, Machine(dtype))
    flat = np.concatenate([np.ravel(one) for one in body]).astype(np.int64)
    program = np.concatenate([[kind, len(flat) + 2], flat])
    bases, held = np.zeros(codes.BUFFERS, np.int64), {}
    for buffer, values in buffers.items():
        held[buffer] = room(values.size, values.dtype)
        held[buffer][: values.size] = values.ravel()
        bases[buffer] = held[buffer].ctypes.data
    out = room(size, dtype)
    out[:] = -7
    bases[OUT] = out.ctypes.data
    machine.run(program, 1, bases, np.zeros(codes.BUFFERS, np.int64), 0, 1)
    for buffer, values in buffers.items():
        np.testing.assert_array_equal(held[buffer][: values.size], values.ravel())
    assert (out[size:] == -7).all()
    return out[:size]


def block(operation: str, size: int) -> list[Any]:
    """OUT = operation(X, Y, Z), number by number."""
    steps = size if size <= codes.BLOCK else codes.BLOCK
    streams = [[buffer, 0, 0, i, 1] for i, buffer in enumerate((X, Y, Z, OUT))]
    return [[1, 0, steps, 1, 4, 1, 0, 0], [size], *streams, [CODES[operation], 3, 0, 1, 2]]

# mypy: disable-error-code="call-arg"
"""The pointwise operations of the table (`operations.py`). Each is a loop over a block of numbers, whose last vector may be partial."""

from types import FunctionType
from typing import Any

from thousandfold.kernels import functions, lanes
from thousandfold.kernels.inner import compiled, joint
from thousandfold.kernels.memory import lanes_of, load, load_some, store, store_some
from thousandfold.operations import OPERATIONS

# The last vector of a block overlaps the previous one, since partial writes are slow. It is computed first, since d may be a.


@joint
def loop(f, d, a, b, c, n):  # type: ignore[no-untyped-def]
    """Compute d = f(a, b, c). The compiler drops the loads of operands that f does not use."""
    width = lanes_of(d)
    if n < width:
        store_some(d, 0, f(load_some(a, 0, n), load_some(b, 0, n), load_some(c, 0, n)), n)
        return
    end = n - width
    last = f(load(a, end), load(b, end), load(c, end))
    for i in range(0, end, width):
        store(d, i, f(load(a, i), load(b, i), load(c, i)))
    store(d, end, last)


def compile_text(text: str) -> Any:
    """Return the function of an operation's text."""
    code = compile(f"lambda x, y, z: {text}", "operations.py", "eval").co_consts[0]
    return joint(FunctionType(code, vars(lanes) | vars(functions)))


def choose(first: int, last: int) -> Any:
    """Return a function that applies the operation with a code first .. last - 1 to n numbers. d may be a, b or c."""
    if last == first + 1:
        f = compile_text(OPERATIONS[first].text)
        return joint(lambda code, d, a, b, c, n: loop(f, d, a, b, c, n))
    middle = (first + last) // 2
    low, high = choose(first, middle), choose(middle, last)

    def apply(code, d, a, b, c, n):  # type: ignore[no-untyped-def]
        if code < middle:
            low(code, d, a, b, c, n)
        else:
            high(code, d, a, b, c, n)

    return (joint if last - first < len(OPERATIONS) else compiled)(apply)


apply: Any = choose(0, len(OPERATIONS))

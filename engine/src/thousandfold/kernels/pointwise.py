# mypy: disable-error-code="call-arg"
"""The pointwise operations of the table (`operations.py`). Each is a loop over a block of numbers, whose last vector may be partial."""

from typing import Any

from thousandfold.kernels import functions, lanes
from thousandfold.kernels.inner import compiled, joint
from thousandfold.kernels.memory import lanes_of, load, load_some, store, store_some
from thousandfold.operations import OPERATIONS

# The last vector of a block overlaps the previous one, since partial writes are slow. It is computed first, since d may be a.


@joint
def loop(f, d, a, b, c, n):  # type: ignore[no-untyped-def]
    """Compute d = f(a, b, c). The compiler drops the loads of operands that f does not use."""
    each = lanes_of(d)
    if n < each:
        store_some(d, 0, f(load_some(a, 0, n), load_some(b, 0, n), load_some(c, 0, n)), n)
        return
    end = n - each
    last = f(load(a, end), load(b, end), load(c, end))
    for i in range(0, end, each):
        store(d, i, f(load(a, i), load(b, i), load(c, i)))
    store(d, end, last)


def write_apply() -> Any:
    """Return apply(code, d, a, b, c, n), which applies an operation to n numbers. d may be a, b or c."""
    names = vars(lanes) | vars(functions) | {"loop": loop}
    text = ["def apply(code, d, a, b, c, n):"]
    for code, operation in enumerate(OPERATIONS):
        names[operation.name] = joint(eval(f"lambda x, y, z: {operation.text}", names))
        text += [f"    {'elif' if code else 'if'} code == {code}:", f"        loop({operation.name}, d, a, b, c, n)"]
    exec("\n".join(text), names)
    return compiled(names["apply"])


apply: Any = write_apply()

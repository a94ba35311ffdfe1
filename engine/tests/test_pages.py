"""Guards the memory of activations: zeros that begin where a large page does, and an error that is known."""

from typing import Any

import pytest

from thousandfold import pages


@pytest.mark.parametrize("count", [1, 2**19 + 1])
def test_zeros_from_the_beginning_of_a_page_on(count: int) -> None:
    numbers = pages.memory(count)
    assert numbers.shape == (count,) and not numbers.any() and numbers.ctypes.data % pages.LARGE == 0
    numbers[:] = 1
    assert numbers.flags.writeable and numbers.sum(dtype=float) == count


def test_too_much_is_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """By which a job knows to try fewer networks at once."""

    def refuse(*args: Any, **options: Any) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(pages.mmap, "mmap", refuse)
    with pytest.raises(MemoryError, match="bytes for activations"):
        pages.memory(10)

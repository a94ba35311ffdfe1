"""Guards the memory of activations: zeros that begin where a large page does, and an error that is known."""

from typing import Any

import pytest

from thousandfold import memory


@pytest.mark.parametrize("count", [1, 2**19 + 1])
def test_zeros_from_the_beginning_of_a_page_on(count: int) -> None:
    numbers = memory.room(count, "float32")
    assert numbers.size >= count and not numbers.any() and numbers.ctypes.data % memory.LARGE == 0
    numbers[:] = 1
    assert numbers.flags.writeable and numbers.all()


def test_too_much_is_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """By which a job knows to try fewer networks at once."""

    def refuse(*args: Any, **options: Any) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(memory.mmap, "mmap", refuse)
    with pytest.raises(MemoryError, match="bytes for activations"):
        memory.room(10, "float32")

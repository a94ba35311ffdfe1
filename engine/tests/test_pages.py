"""Guards the memory of activations: zeros that begin where a large page does, and an error that is known."""

from typing import Any

import pytest

from thousandfold import memory


def test_too_much_is_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """By which a job knows to try fewer networks at once."""

    def refuse(*args: Any, **options: Any) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(memory.mmap, "mmap", refuse)
    with pytest.raises(MemoryError, match="bytes for activations"):
        memory.room(10, "float32")

"""Guards the size of stacks on a GPU: what is free, by estimate, and never more than the configuration says."""

import pytest
import torch
from helpers import cells
from hypothesis import given
from hypothesis import strategies as st

from rankfall.run.jobs.engine import SHARE, Settings, free_megabytes, members_at_once, members_that_fit, stacks
from rankfall.run.plan.cost import member_megabytes

GPU = torch.device("cuda")


@given(st.floats(1, 1e6), st.integers(1, 5000))
def test_as_many_as_fit_to_a_power_of_two(free: float, own: int) -> None:
    members = members_that_fit(free, own)
    assert members & (members - 1) == 0
    assert members == 1 or members * own <= SHARE * free
    assert 2 * members * own > SHARE * free
    if members > 1 and members * own < 0.9 * SHARE * free:
        assert members_that_fit(0.9 * free, own) == members  # a job that is started again has the same stacks


def test_free_is_also_what_is_kept_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (3 * 2**20, 9 * 2**20))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 5 * 2**20)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 2**20)
    assert free_megabytes(GPU) == 7


def test_stacks_of_a_gpu_follow_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    several = cells(grid={"seed": "0..39"})
    own = member_megabytes(several[0].task, several[0].architecture, several[0].training)
    monkeypatch.setattr("rankfall.run.jobs.engine.free_megabytes", lambda device: 20 * own / SHARE)
    sizes = {}
    for device in (GPU, torch.device("cpu")):
        for limit in (4096, 12):
            settings = Settings(device, limit)
            made = stacks(several, lambda cell, now=settings: members_at_once(cell, now))  # type: ignore[misc]
            sizes[device.type, limit] = [len(stack) for stack in made]
    assert sizes == {
        ("cuda", 4096): [16, 16, 8],
        ("cuda", 12): [12, 12, 12, 4],
        ("cpu", 4096): [40],
        ("cpu", 12): [12, 12, 12, 4],
    }

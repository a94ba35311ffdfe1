"""Guards the size of stacks on a GPU: what is free, by estimate, and never more than the configuration says."""

import pytest
import torch
from helpers import cells

from rankfall.run.jobs.engine import SHARE, Settings, members_at_once, stacks
from rankfall.run.plan.cost import member_megabytes

GPU = torch.device("cuda")


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

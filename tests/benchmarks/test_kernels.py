"""Guards the profile of the fused step: its parts are all there, and their operations are those that PyTorch counts in the same step."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")
sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks import kernels, limits


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "dropout"), [("sorting transformer converged 6", 0.0), ("sorting SAN+skip converged 6", 0.1)]
)
def test_parts_of_a_step(network: str, dropout: float) -> None:
    found, counts = kernels.profiled(network, dropout, rounds=1)
    assert {*kernels.PARTS, kernels.STEP, kernels.TILE, kernels.THEIRS} == {*found}
    assert all(seconds > 0 for seconds in found.values())
    assert (found["gelu"] > 1e-5) is ("transformer" in network) and (found["masks of dropout"] > 1e-5) is (dropout > 0)
    counted = sum(counts[part] for part in kernels.PARTS if part in counts)
    assert 0.985 < counted / limits.work(network).operations < 1  # less those of the head, and of what it reads

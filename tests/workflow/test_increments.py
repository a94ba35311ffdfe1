"""Guards what a grid that grows costs on a cluster: only jobs with something to compute are submitted."""

import pytest
from checkout import Checkout
from increments import count, finished, grid, steps

from rankfall.run.plan import Plan, make_plan

SEEDS, DEPTHS = 100, 20


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A finished run of ten thousand cells."""
    return finished(tmp_path_factory.mktemp("large") / "checkout", grid(SEEDS, DEPTHS))


def working(plan: Plan, before: Plan) -> int:
    """Return the number of jobs whose cells are not those of a job of before: new cells, or a shard that is divided."""
    known = {frozenset(cell.key for cell in before.shards[place]) for place in before.shards}
    changed = [place for place in plan.shards if frozenset(cell.key for cell in plan.shards[place]) not in known]
    return 2 * len(changed)  # each trains, and measures


@pytest.mark.slow
@pytest.mark.parametrize(("added", "most"), [("nothing", 0), ("one seed", 0.1)])
def test_only_jobs_with_something_to_compute_are_submitted(checkout: Checkout, added: str, most: float) -> None:
    """`most` is the share of the shards that new cells may touch: a new seed joins few of them."""
    config = steps(SEEDS, DEPTHS)[added]
    plan, before = make_plan(config), make_plan(grid(SEEDS, DEPTHS))
    there = {cell.key for cell in before.cells}
    new = {cell for cell in plan.cells if cell.key not in there}
    found = count(checkout, config)
    assert found.submitted == working(plan, before), found.output
    assert len({cell.shard for cell in new}) <= most * len(plan.shards)
    assert found.seconds < 20
    if added == "nothing":
        assert not found.jobs

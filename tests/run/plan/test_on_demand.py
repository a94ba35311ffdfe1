"""Guards that a job plans the measure or figure that it makes and no other, and plans it as the run has planned it."""

from plans import changed

from rankfall.run.plan import make_plan
from rankfall.run.plan.slices import Slice

BOTH = changed(
    "figures",
    {"paths": {"task": "sorting", "architectures": ["san"]}, "path_counts": {}},
    changed("measures", {"paths": {"counts": [2]}, "path_counts": {}, "scorecard": {}, "reproduction": {}}),
)


def test_a_job_plans_only_what_it_asks_for() -> None:
    plan = make_plan(BOTH, Slice([]))
    assert plan.measure("path_counts").needs == "nothing"
    plan.figure("path_counts")
    for section in (plan.measures, plan.figures):
        made = section.made  # type: ignore[attr-defined]
        assert [name for name, entry in made.items() if entry is not None] == ["path_counts"]


def test_what_a_job_plans_is_what_the_run_has_planned() -> None:
    whole, part = make_plan(BOTH), make_plan(BOTH, Slice([]))
    assert dict(part.measures) == dict(whole.measures) and dict(part.figures) == dict(whole.figures)
    assert part.tables == whole.tables
    assert whole.measure("scorecard").tables, "a measure of tables reads those that this run makes"
    assert {"scorecard", "reproduction"}.isdisjoint(whole.measure("scorecard").tables)

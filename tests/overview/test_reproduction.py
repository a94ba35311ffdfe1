"""Check the comparison with published numbers: the files of facts, which of our rows stand beside them, and the verdict."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rankfall.measure.context import Context
from rankfall.overview.reproduction import measure as module
from rankfall.overview.reproduction.measure import Searched, conditions, equals, holds, reproduction
from rankfall.rank.path_counts.measure import path_counts
from rankfall.rank.residuals import shown
from rankfall.report import tables
from rankfall.report.published_numbers import published_numbers
from rankfall.report.rows import cell_columns
from rankfall.report.schema import schema
from rankfall.run.plan import make_plan

PAPER = Path(__file__).parents[2] / "workflow" / "presets" / "paper.yaml"

VALUE = {
    "name": "n", "source": "paper", "source_name": "Nobody 2020", "source_title": "On attention", "source_link": "https://example.org",
    "place": "figure", "what": "w", "kind": "measured", "sense": "equal", "published": 0.5, "tolerance": 0.02, "table": "paths",
    "column": "accuracy", "where": "task=sorting;kind=path;length=1", "less": "", "over": "", "least": "", "within": "",
    "at": "training=long", "by": "training",
}  # fmt: skip


def ours(**changes: Any) -> pd.DataFrame:
    """Return two trainings, two seeds, two repeats; a null length arrives as pandas' nullable integer."""
    about = {"task": "sorting", "kind": "path", "length": 1, "status": "done"}
    rows = [
        about | {"training": training, "seed": seed, "accuracy": accuracy + 0.1 * seed + repeat}
        for training, accuracy in (("long", 0.45), ("short", 0.2))
        for seed in (0, 1)
        for repeat in (-0.01, 0.01)
    ]
    rows += [
        rows[0] | {"kind": "chance", "length": None, "accuracy": 9.0},
        rows[0] | {"status": "missing", "accuracy": None},
    ]
    return pd.DataFrame([row | changes for row in rows]).astype({"length": pd.Int64Dtype()})


def beside(value: dict[str, Any], frame: pd.DataFrame | None) -> list[dict[str, Any]]:
    return module.place_beside(value, None if frame is None else Searched(frame))


def test_ours_is_the_mean_over_seeds_of_means_within_each() -> None:
    long, short = beside(VALUE, ours())
    assert (long["setting"], short["setting"]) == ("training=long", "training=short")
    assert long["ours"] == pytest.approx(0.5) and long["deviation"] == pytest.approx(0.1 / 2**0.5)
    assert long["seeds"] == 2 and long["difference"] == pytest.approx(0.0, abs=1e-12) and long["holds"]
    assert short["difference"] == pytest.approx(-0.25) and not short["holds"]
    assert (long["held"], short["held"], long["failed"]) == (0, 0, 0)  # neither seed by itself is near
    assert long["at_published"] and not short["at_published"]


@pytest.mark.parametrize(
    ("sense", "published", "expected"),
    [
        ("equal", 0.4, [False, False]),
        ("above", 0.4, [True, False]),
        ("below", 0.4, [False, True]),
        ("all above", 0.47, [False, False]),  # the mean is, the first seed is not
        ("all above", 0.44, [True, False]),
        ("all below", 0.31, [False, True]),
    ],
)
def test_each_sense(sense: str, published: float, expected: list[bool]) -> None:
    value = VALUE | {"sense": sense, "published": published, "tolerance": 0.0}
    assert [row["holds"] for row in beside(value, ours())] == expected


@pytest.mark.parametrize(
    ("sense", "published", "tolerance", "holding", "failing"),
    [
        ("magnitude", 0.01, 0.3, (0.018, 0.0052), (0.021, 0.0)),
        ("floor", 2e-7, 1e-6, (0.0,), (2e-6,)),
        ("above", 0.5, 0.1, (0.45,), (0.4,)),  # a tolerance lies on both sides of a published number
        ("below", 0.5, 0.1, (0.55,), (0.6,)),
    ],
)
def test_senses_and_tolerances(
    sense: str, published: float, tolerance: float, holding: tuple[float, ...], failing: tuple[float, ...]
) -> None:
    assert all(holds(value, published, sense, tolerance) for value in holding)
    assert not any(holds(value, published, sense, tolerance) for value in failing)


def curve(**columns: list[Any]) -> pd.DataFrame:
    """Rows of one finished network a seed, from columns that say what differs."""
    about = {"task": "sorting", "training": "long", "status": "done", "depth": 2, "seed": 0}
    frame = pd.DataFrame(columns)
    return pd.DataFrame([about | {k: v for k, v in row.items() if v is not ...} for row in frame.to_dict("records")])


def test_a_difference_is_within_a_network() -> None:
    """Chance has no evaluation, so it is paired with each; the seeds differ by far more than what is asked."""
    frame = curve(
        seed=[0, 0, 0, 1, 1, 1],
        kind=["path", "path", "chance"] * 2,
        evaluation=["frozen", "recomputed", None] * 2,
        accuracy=[0.3, 0.4, 0.2, 0.8, 0.7, 0.6],
    )
    value = VALUE | {"where": "task=sorting;kind=path", "by": "training;evaluation", "published": 0.0, "sense": "above"}
    frozen, recomputed = beside(value | {"less": "kind=chance;evaluation="}, frame)
    assert (frozen["ours"], recomputed["ours"]) == (pytest.approx(0.15), pytest.approx(0.15))
    assert frozen["deviation"] == pytest.approx(0.05 * 2**0.5) and frozen["held"] == frozen["seeds"] == 2
    assert "evaluation=frozen" in frozen["setting"] and "evaluation=recomputed" in recomputed["setting"]
    frozen, recomputed = beside(value | {"over": "kind=chance;evaluation="}, frame)
    assert frozen["ours"] == pytest.approx((1.5 + 8 / 6) / 2) and recomputed["ours"] == pytest.approx((2 + 7 / 6) / 2)


def test_the_least_along_a_column_and_where_it_is() -> None:
    frame = curve(seed=[0, 1] * 3, length=[1, 1, 2, 2, 3, 3], accuracy=[0.1, 0.9, 0.3, 0.4, 0.5, 0.5])
    (row,) = beside(VALUE | {"where": "task=sorting", "by": "training;length", "least": "length"}, frame)
    assert row["ours"] == pytest.approx(0.35) and row["setting"] == "training=long, length=2"


@pytest.mark.parametrize("lost", [{"accuracy": float("nan")}, {"accuracy": float("inf")}, {"x": 3.0}, {"x": None}])
def test_a_failed_seed_is_counted_and_no_comparison_holds_with_one(lost: dict[str, Any]) -> None:
    """A state that stays apart because it ran away, or is no number any more, is not a state that stays apart."""
    frame = curve(seed=[0, 1, 2, 2], x=[0.1] * 4, accuracy=[0.6] * 4).astype({"x": float})
    value = VALUE | {"where": "task=sorting", "within": "x=0.56", "sense": "above", "published": 0.03}
    (whole,) = beside(value, frame)
    assert whole["holds"] and whole["failed"] == 0
    for name, value_of_row in lost.items():
        frame.loc[3, name] = value_of_row  # one of the two rows of a seed is enough
    (row,) = beside(value, frame)
    assert (row["seeds"], row["held"], row["failed"], row["holds"]) == (2, 2, 1, False) and row["ours"] == 0.6
    (alone,) = beside(value, frame[frame.seed == 2])
    assert (alone["ours"], alone["seeds"], alone["failed"], alone["holds"]) == (None, 0, 1, False)


def test_a_cell_that_diverged_in_training_has_failed() -> None:
    """Its one row says what the cell is and nothing of steps, so it counts wherever the cell would."""
    frame = curve(seed=[0, 1], status=["done", "diverged"], step=[299, None], accuracy=[0.5, None])
    (row,), (other,) = (beside(VALUE | {"where": f"task=sorting;step=299{more}"}, frame) for more in ("", ";depth=3"))
    assert (row["ours"], row["seeds"], row["failed"], row["holds"]) == (0.5, 1, 1, False)
    assert other["ours"] is None and other["holds"] is None


def test_different_networks_are_never_averaged() -> None:
    """Even where what is asked for and what always tells settings apart do not tell them apart."""
    frame = curve(depth=[2, 2, 6], mlp=["none", "gelu", "none"], accuracy=[0.1, 0.2, 0.3])
    rows = beside(VALUE | {"where": "task=sorting"}, frame)
    assert [(row["setting"], row["ours"]) for row in rows] == [
        ("training=long, depth=2, mlp=gelu", 0.2),
        ("training=long, depth=2, mlp=none", 0.1),
        ("training=long, depth=6, mlp=none", 0.3),
    ]


@pytest.mark.parametrize("frame", [None, ours(task="hull")])
def test_what_no_run_measures_keeps_its_row(frame: pd.DataFrame | None) -> None:
    (row,) = beside(VALUE, frame)
    assert row["published"] == 0.5 and row["ours"] is None and row["holds"] is None and row["seeds"] == 0


def test_the_files_of_facts_are_whole_and_no_verdict_is_vacuous() -> None:
    """Nothing at all and ten times as much do not hold, except where that is what the paper says."""
    values = list(published_numbers())
    assert len({value["name"] for value in values}) == len(values) > 190
    for value in values:
        assert value["kind"] in ("measured", "typed", "claimed", "exact") and value["what"] and value["place"]
        assert value["source"] in ("paper", "code") or "second-hand" in value["place"]
        assert not (value["less"] and value["over"])
        known = {column.name for column in schema(value["table"]).columns}
        fields = ("where", "less", "over", "within", "at")
        asked = {name for field in fields for name, _ in conditions(value[field])} | {value["least"]} - {""}
        by = value["by"].split(";")
        assert asked | {value["column"]} | set(by) <= known, value["name"]
        assert not value["least"] or value["least"] in by
        wanted, sense, tolerance = float(value["published"]), value["sense"], float(value["tolerance"])
        nothing, much = (0.0, 10 * wanted) if wanted else (-1.0, 1.0)  # a difference is 0 where there is none
        assert holds(nothing, wanted, sense, tolerance) == (sense in ("below", "all below", "floor")), value["name"]
        assert holds(much, wanted, sense, tolerance) == (sense in ("above", "all above")), value["name"]


def test_every_published_path_count_is_what_the_measure_counts() -> None:
    table = pd.DataFrame(path_counts(Context()))
    found = [row for value in published_numbers() if value["table"] == "path_counts" for row in beside(value, table)]
    assert len(found) == 11 and all(row["holds"] and row["at_published"] for row in found)
    assert [row["setting"] for row in found][-3:] == ["model=DistilBert", "model=MobileBert", "model=DeiT-T"]


PUBLISHED = {value["setting"]: value["at"] for value in published_numbers() if "setting" in value}
CELLS = [cell_columns(cell) for cell in make_plan(PAPER).cells]
RTE = "memorization(labels=2, length=128, padded=true, test=88, text=rte, tokenizer=bert-base-uncased, train=500, vocabulary=9)"


def at_setting(setting: str, **changes: Any) -> set[tuple[str, str, str]]:
    """Return the cells of the preset that are at a setting, after the same changes to each of them."""
    changed = (cell | changes for cell in CELLS)
    return {
        (cell["task"], cell["architecture"], cell["training"])
        for cell in changed
        if all(equals(cell[name], wanted) for name, wanted in conditions(PUBLISHED[setting]))
    }


def test_the_published_settings_are_those_of_the_preset() -> None:
    """Of the preset with the papers' sizes, exactly the networks trained as published are at the published settings."""
    assert at_setting("sorting") == {("sorting", "published_sorting", "published")}
    assert at_setting("hull") == {("convex_hull", "published_hull", "published_hull")}
    assert at_setting("memorization") == set()  # the preset has another text
    rte = {"task_component": RTE}
    assert at_setting("memorization", **rte) == {("memorization", "published_memorization", "published_memorization")}
    circles = at_setting("circle")
    assert {training for _, _, training in circles} == {"published_circle"}
    assert {task for task, _, _ in circles} == {"circle", "circle_script", "circle_script_skip", "circle_step"}
    for cell in map(cell_columns, make_plan(PAPER.with_name("urpe.yaml")).cells):
        assert all(equals(cell[name], wanted) for name, wanted in conditions(PUBLISHED["urpe"]))


def test_rows_fit_the_declared_table(tmp_path) -> None:
    path = tmp_path / "reproduction.parquet"
    rows = reproduction(Context())
    tables.write("reproduction", rows, path, tables.provenance())
    assert len(tables.read(path, "reproduction")) == len(rows) == len(list(published_numbers()))


def test_a_point_of_a_curve_is_judged_by_its_mean_and_its_deviation() -> None:
    """Three deviations, at most a fifth of the mean, at least .02; small ones by their decade."""
    points = pd.read_csv(Path(shown.__file__).with_name("rank_by_layer.csv"), comment="#")
    found = {value["name"]: value for value in published_numbers() if value["place"] == "figure 2"}
    assert len(points) > 10
    for point in points.itertuples():
        value = found[f"{point.model} {point.phase} {point.variant} layer {point.layer:02d}"]
        if point.mean >= 0.05:
            width = min(max(0.02, 3 * point.std), 0.2 * point.mean)
            assert (value["sense"], value["tolerance"]) == ("equal", pytest.approx(width))
        else:
            assert value["sense"] in ("magnitude", "floor")

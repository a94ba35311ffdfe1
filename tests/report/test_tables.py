"""Guards the contract of tables: what does not fit its declaration is refused with a line that names it, and equal
input gives equal bytes.
"""

import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import cells
from page_tables import cell_rows, residual_rows

from rankfall.errors import RankfallError
from rankfall.report import conform as conforming
from rankfall.report import tables
from rankfall.report.conform import conform
from rankfall.report.rows import cell_columns
from rankfall.report.runs import differences
from rankfall.report.schema import CELL_COLUMNS, Column, Table, declare_columns, declare_table
from rankfall.run.jobs.row_keeper import check_numbers


def a_cell(key="k0", seed=0, **architecture):
    """Return what a table asks of a cell, with a key of one's choice."""
    (cell,) = cells(architecture=architecture, training={"epochs": 3})
    return SimpleNamespace(key=key, seed=seed, task=cell.task, training=cell.training, architecture=cell.architecture)


def path_rows(key="k0", seed=0, **record):
    cell = cell_columns(a_cell(key, seed), {"status": "done"} | record)
    rows = [
        cell | {"kind": "path", "evaluation": "frozen", "length": n, "paths": 5, "repeat": r, "accuracy": n / 7}
        for n in (2, 1, 0)
        for r in (1, 0)
    ]
    return [*rows, cell | {"kind": "chance", "accuracy": 0.339}]


def test_what_is_written_is_read_sorted_with_types_units_and_provenance(tmp_path):
    path = tmp_path / "new folder" / "paths.parquet"
    tables.write("paths", path_rows(), path, tables.provenance("c0ffee", ["k0"], "cpu"))
    data = tables.read(path, "paths")
    assert data["length"].to_pylist() == [None, 0, 0, 1, 1, 2, 2]
    assert data["repeat"].to_pylist() == [None, 0, 1, 0, 1, 0, 1]
    assert data.schema.field("length").metadata[b"unit"] == b"layers"
    about = tables.about_of(data)
    assert (about["config"], about["device"], about["table"]) == ("c0ffee", "cpu", "paths")
    assert set(about) >= {"cells", "versions", "rankfall", "time", "schema"}
    assert '"snakemake"' in about["versions"]


def test_the_same_rows_in_any_order_give_the_same_bytes(tmp_path):
    about = tables.provenance("c", ["k0", "k1"]) | {"time": "now"}
    rows = path_rows("k0") + path_rows("k1", 1)
    for name, order in [("a", rows), ("b", rows[::-1]), ("c", rows[5:] + rows[:5])]:
        tables.write("paths", order, tmp_path / name, about)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()


def test_combining_shards_is_the_same_as_writing_at_once_and_none_make_an_empty_table(tmp_path):
    shards = {}
    for number, key in (("0", "k0"), ("1", "k1")):
        shards[number] = tmp_path / number
        tables.write("paths", path_rows(key, int(number)), tmp_path / number, tables.provenance(device="cpu"))
    tables.write("paths", path_rows("k1", 1) + path_rows("k0"), tmp_path / "all")
    assert tables.combine("paths", [shards["1"], shards["0"]], tmp_path / "combined", "digest") == 14
    assert tables.read(tmp_path / "combined").equals(tables.read(tmp_path / "all"))
    assert tables.about_of(tables.read(tmp_path / "combined"))["device"] == "cpu"
    assert tables.combine("paths", [], tmp_path / "none") == 0
    assert tables.read(tmp_path / "none", "paths").num_rows == 0
    with pytest.raises(RankfallError, match="2 rows with the same key"):
        tables.combine("paths", [shards["0"], shards["0"]], tmp_path / "combined")


WRONG = [
    ({"lenght": 1}, r"column 'lenght' is not declared; did you mean 'length'"),
    ({"accuracy": "0.5"}, r"column 'accuracy' mixes types"),
    ({"length": 1.5}, r"column 'length' has values that are not int64"),
    ({"shuffle": 1}, r"column 'shuffle' mixes types"),
    ({"seed": None}, r"column 'seed' has a null"),
    ({"lr": math.nan}, r"column 'lr' has a NaN, row \d+, task \S+, architecture .*, seed \d+"),
    (
        {"kind": "path", "evaluation": "frozen", "length": 2, "paths": 5, "repeat": 0},
        r"2 rows with the same key.*'length': 2",
    ),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_rows_that_do_not_fit_are_refused_and_nothing_is_written(change, message, tmp_path):
    rows = path_rows()
    rows[-1] = rows[-1] | change
    with pytest.raises(RankfallError, match=message) as caught:
        tables.write("paths", rows, tmp_path / "paths.parquet")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", ["failed", "diverged", "missing"])
def test_a_cell_that_is_not_done_is_a_row_without_values(status):
    bad = cell_columns(a_cell("k9", 9), {"status": status, "reason": "loss was NaN"})
    data = conform("paths", [*path_rows(), bad])
    row = next(row for row in data.to_pylist() if row["status"] == status)
    assert (row["reason"], row["kind"], row["accuracy"]) == ("loss was NaN", None, None)
    assert conform("paths", [bad]).num_rows == 1
    with pytest.raises(RankfallError, match="null"):
        conform("paths", [bad | {"status": "done"}, *path_rows()])


def test_nan_is_kept_apart_from_null(tmp_path, monkeypatch):
    table = Table("paths", "a cell", (Column("x", "float", "x", nullable=True, nan=True),), key=("x",))
    rows = [cell_columns(a_cell(), {"status": "done"}) | {"x": x} for x in (math.nan, None)]
    for module in (tables, conforming):
        monkeypatch.setattr(module, "schema", lambda name: table)
    tables.write("paths", rows, tmp_path / "t")
    assert math.isnan(rows[0]["x"])
    written = tables.read(tmp_path / "t")["x"].to_pylist()
    assert sum(x is None for x in written) == 1
    assert sum(x is not None and math.isnan(x) for x in written) == 1


def test_comparison_leaves_out_provenance_and_nothing_else(tmp_path):
    def table(name, **changes):
        rows = path_rows(device="cpu", stack="s1")
        rows[0] = rows[0] | changes
        tables.write("paths", rows, tmp_path / name, tables.provenance(device=name))
        return tables.read(tmp_path / name)

    one = table("one")
    assert not differences(one, table("two", device="cuda:0", stack="s2"))
    assert differences(one, table("two", accuracy=0.75))[0].startswith(
        "accuracy: 1 of 7 rows differ, by up to 0.62 relative: 0.28"
    )
    assert differences(one, table("two", accuracy=2 / 7 + 1e-12))
    assert not differences(one, table("two", accuracy=2 / 7 + 1e-12), tolerance=1e-9)
    assert differences(one, table("two", accuracy=math.nan), tolerance=1e9)
    assert not differences(table("one", accuracy=math.nan), table("two", accuracy=math.nan))
    assert "only in the second" in " ".join(differences(one, table("two", length=3)))
    assert differences(one, table("two", dropout=0.2))


def test_a_cell_says_its_whole_spec_in_columns():
    scaled = {"residual": {"name": "scaled", "scale": 0.5}}
    columns = cell_columns(a_cell(**scaled), {"status": "done", "device": "cpu"})
    assert columns.keys() == {column.name for column in CELL_COLUMNS}
    assert (columns["residual"], columns["normaliser"]) == ("scaled(scale=0.5)", "softmax")
    assert (columns["mlp_residual"], columns["mlp_width"]) == (None, None)  # there is no MLP
    unknown = (None, None, None)  # of what an earlier version kept
    assert (columns["host"], columns["processor"], columns["torch"]) == unknown
    record = {"status": "done", "host": "n7", "processor": "p", "versions": {"torch": "2.9"}}
    columns = cell_columns(a_cell(mlp="gelu", mlp_residual="add", mlp_width=192), record)
    assert (columns["mlp_residual"], columns["mlp_width"]) == ("add", 192)
    assert (columns["host"], columns["processor"], columns["torch"]) == ("n7", "p", "2.9")
    assert cell_columns(a_cell())["status"] == "missing"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": -3.0}, "column 'value' has -3.0, below 0"),
        ({"layer": 99}, "column 'layer' has 99, above depth"),
        ({"layer": -1}, "column 'layer' has -1, below 0"),
        ({"layer": 2**70}, "column 'layer' mixes types or holds no plain values: Python int too large"),
    ],
)
def test_a_number_beyond_its_column_is_refused(changes, message):
    """A residual of -3 and layer 99 of a network of six layers were accepted, and 2**70 ended in a bare OverflowError."""
    (row, *_) = residual_rows(cell_rows(1))
    assert len(conform("residuals", [row])) == 1
    with pytest.raises(RankfallError, match=re.escape(message)):
        conform("residuals", [row | changes])


OWN = """
def measure(context):
    return []
"""


@pytest.fixture
def own_table(tmp_path, monkeypatch):
    """Return the name of a table whose columns no file declares."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "inferred_lab").mkdir()
    (tmp_path / "inferred_lab" / "plain.py").write_text(OWN)
    return "inferred_lab.plain"


def test_a_table_without_declaration_has_the_columns_of_its_rows(own_table, tmp_path):
    paths = [tmp_path / f"{part}.parquet" for part in range(2)]
    first, second = (cell_columns(a_cell(f"k{seed}", seed), {"status": "done"}) for seed in range(2))
    tables.write(own_table, [first | {"layer": layer, "kept": layer, "kind": "mean"} for layer in (2, 1)], paths[0])
    tables.write(own_table, [second | {"layer": 1, "kept": 0.5, "all": True}], paths[1])
    tables.combine(own_table, paths, tmp_path / "whole.parquet")
    whole = tables.read_frame(tmp_path / "whole.parquet", own_table)
    assert whole[["seed", "layer", "kept"]].values.tolist() == [[0, 1, 1.0], [0, 2, 2.0], [1, 1, 0.5]]
    assert list(whole.kind.fillna("")) == ["mean", "mean", ""] and whole["all"].tolist()[2] is True


def test_a_column_without_a_value_in_one_part_has_its_type_from_another(own_table, tmp_path):
    paths = [tmp_path / f"{part}.parquet" for part in range(3)]
    for seed, (path, note) in enumerate(zip(paths, (None, "deep", 3))):
        row = cell_columns(a_cell(f"k{seed}", seed), {"status": "done"}) | {"layer": 1, "note": note}
        tables.write(own_table, [row], path)
    tables.combine(own_table, paths[:2], tmp_path / "whole.parquet")
    assert tables.read(tmp_path / "whole.parquet")["note"].to_pylist() == [None, "deep"]
    with pytest.raises(RankfallError, match="give a column one type everywhere"):
        tables.combine(own_table, paths[1:], tmp_path / "whole.parquet")


def test_rows_may_not_have_a_column_that_every_network_has(own_table):
    job = SimpleNamespace(measure=SimpleNamespace(name="mine", table=own_table))
    with pytest.raises(RankfallError, match="gives a column 'depth', which every table of networks has already"):
        check_numbers(a_cell(), [{"depth": 1, "kept": 0.5}], job)
    check_numbers(a_cell(), [{"layer": 1, "kept": 0.5}], job)
    with pytest.raises(RankfallError, match=r"column 'kept' has a NaN.*\nfix: declare `kept float nan` in its columns"):
        check_numbers(SimpleNamespace(**vars(a_cell()), title="it"), [{"layer": 1, "kept": math.nan}], job)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"kept": float("nan")}, "has a NaN"),
        ({"kept": np.zeros(2)}, "values of type list"),
        ({"kept": object()}, "holds no plain values"),
    ],
)
def test_rows_that_no_table_can_hold_are_refused(own_table, row, message):
    with pytest.raises(RankfallError, match=message):
        conform(own_table, [cell_columns(a_cell(), {"status": "done"}) | row])


def test_columns_are_declared_by_a_line_of_text_each():
    declared = declare_columns(
        """
        layer int 0..depth: 0 is the embedding
        loss float? [nats] -1.5.. nan: a loss: its meaning
            goes on; null: not measured
        seconds float [s] provenance: of a step
        """
    )
    assert declared == (
        Column("layer", "int", "0 is the embedding", bounds=(0, "depth")),
        Column(
            "loss", "float", "a loss: its meaning goes on; null: not measured", "nats", True, True, bounds=(-1.5, None)
        ),
        Column("seconds", "float", "of a step", unit="s", provenance=True),
    )
    for line in (
        "layer int, 0 is the embedding",
        "layer: 0 is the embedding",
        "layer int nan? : x",
        "    x\nlayer int: x",
    ):
        with pytest.raises(RankfallError, match="declares no column"):
            declare_columns(line)
    with pytest.raises(RankfallError, match="type other than"):
        declare_table("drift", "a cell", "layer integer: 0 is the embedding")
    with pytest.raises(RankfallError, match="layer"):
        declare_table("drift", "a cell", "drift float: x", key="layer")

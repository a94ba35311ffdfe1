"""Figures of the rank study: drawn from real rows of small networks, and their captions say the right numbers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from helpers import cells, data_of, network_of

from rankfall import components
from rankfall.measure.context import Context
from rankfall.rank.models import figure as draw_models
from rankfall.report import style, tables
from rankfall.report.rows import cell_columns

INPUTS = torch.randint(6, (1, 8, 5), generator=torch.Generator().manual_seed(0))
DATA = data_of(INPUTS)


def rows_of_residuals(**architecture: Any) -> list[dict[str, Any]]:
    """Return the residuals of one small untrained network, with what the cell is."""
    parts = {"depth": 4, "norm": "none"} | architecture
    network, (cell,) = network_of(1, 5, 6, torch.float32, **parts), cells(architecture=parts)
    about = cell_columns(cell, {"status": "done", "reason": "", "device": "cpu", "stack": "s"})
    return [about | row for row in components.load("measure", "residuals")(Context(network, DATA, [cell]))]


def reader(folder: Path, name: str, rows: list[dict[str, Any]]) -> Callable[[str], pd.DataFrame]:
    """Rows written and read back as the pipeline does."""
    tables.write(name, rows, folder / f"{name}.parquet")
    return lambda wanted: tables.read_frame(folder / f"{wanted}.parquet", wanted)


def test_orders(tmp_path: Path) -> None:
    options = {
        "normalisers": ["softmax", "exp"],
        "positions": ["none"],
        "masks": ["none", "causal"],
        "sentinels": ["none"],
    }
    rows = components.load("measure", "orders")(Context(), heads=[2], draws=3, **options)
    for quantity in ("res", "sigma_ratio"):
        with style.apply_style():
            picture = components.load("figure", "orders")(reader(tmp_path, "orders", rows), quantity=quantity)
        assert "Of 4 attention layers 1 are cubic (softmax), 2 of first order and 1 of order 0" in picture.caption
        assert ("(0 of " in picture.caption) == (quantity == "res")


def test_variants_of_an_attention_have_a_row_each(tmp_path: Path) -> None:
    """Two variants that differed in an option shared a row, and the last one overwrote the number of the other."""
    measured = components.load("measure", "orders")(
        Context(), normalisers=["softmax"], positions=["none"], masks=["none"], sentinels=["none"], blocks=["attention alone", "skip"],
        heads=[2], draws=3,
    )  # fmt: skip
    orders = {"multihead": 3.0, "top(k=3, penalty=0.1)": 1.0, "top(k=3, penalty=0.0)": 2.0, "other(k=3)": 0.0}
    rows = [row | {"attention": attention, "order": order} for attention, order in orders.items() for row in measured]
    picture = components.load("figure", "orders")(reader(tmp_path, "orders", rows))
    left = picture.figure.axes[0]
    names = [text.get_text() for text in left.get_yticklabels()]
    squares = {names[int(text.get_position()[1])]: text.get_text() for text in left.texts if text.get_text().isdigit()}
    assert squares == {
        "softmax": "3", "top 0.1, softmax": "1", "top 0.0, softmax": "2", "other, softmax": "0"
    }  # fmt: skip


def test_an_absolute_residual_is_of_one_norm_and_centre(tmp_path: Path) -> None:
    """It was drawn as the mean over all norms and both centres, whatever was asked for."""
    rows = rows_of_residuals(residual="none", position="none")
    for norm, centre in (("frobenius", "mean"), ("l1", "best")):
        asked = {"quantity": "absolute_residual", "matrix_norm": norm, "centre": centre, "place": "state"}
        values = pd.DataFrame([row for row in rows if all(row[name] == one for name, one in asked.items())])
        picture = components.load("figure", "residuals")(
            reader(tmp_path, "residuals", rows), quantity="absolute_residual", norm=norm, centre=centre
        )
        assert picture.numbers is not None and f"{norm} norm about the" in picture.caption
        (line,) = [line for line in picture.figure.axes[0].lines if len(line.get_xdata()) == 5]
        expected = values.groupby("layer").value.mean().tolist()[:2]  # below are zeros, drawn as the smallest value
        assert line.get_ydata()[:2].tolist() == pytest.approx(expected)


def test_a_residual_of_0_pulls_its_mean_down_and_is_not_left_out(tmp_path: Path) -> None:
    """Two of three networks collapse to equal rows, and one keeps all: the line falls, where the mean of those that are left would rise."""
    (row, *_) = [row for row in rows_of_residuals() if row["quantity"] == "residual" and row["place"] == "state"]
    course = {0: (1.0, 1e-8, 0.0), 1: (1.0, 1e-6, 0.0), 2: (1.0, 1.0, 1.0)}
    rows = [
        row | {"matrix_norm": "composite", "centre": "mean", "seed": seed, "key": str(seed) * 64, "layer": layer, "value": value}
        for seed, values in course.items()
        for layer, value in enumerate(values)
    ]  # fmt: skip
    picture = components.load("figure", "residuals")(reader(tmp_path, "residuals", rows), architectures=["net"])
    assert "Networks with less than 1% of it left after the last layer: " in picture.caption
    assert ", 2 layers: net 2 of 3." in picture.caption
    (line,) = [line for line in picture.figure.axes[0].lines if len(line.get_xdata()) == 3]
    # The lowest that is not 0 is 1e-8: (1e-8 * 1e-8 * 1)^(1/3), where 1 alone would be left.
    assert line.get_ydata().tolist() == pytest.approx([1.0, 10 ** (-14 / 3), 10 ** (-16 / 3)])
    assert picture.numbers.seeds.tolist() == [3, 3, 3]


def model_rows(dtype: str = "float64", spread: float = 0.1, model: str = "bert", **sizes: int) -> pd.DataFrame:
    rows = [
        {"model": model, "phase": "init", "definition": "clean", "dtype": dtype, "variant": variant, "seed": seed, "layer": layer}
        | {"sample": sample, "metric": "composite", "centre": "mean", "floor": value < 1e-14, "value_reason": ""}
        | {"value": value * (1 + spread * (2 * sample - 1) + 0.01 * seed)}
        for variant, values in (("SAN", [1.0, 1e-5, 1e-15]), ("transformer", [1.0, 0.9, 0.8]))
        for layer, value in enumerate(values)
        for seed in (0, 1)
        for sample in (0, 1)
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(**{"layers": 2, "heads": 2, "width": 64} | sizes)


@pytest.mark.parametrize(
    ("sizes", "same"), [((12, 12, 768), True), ((2, 12, 768), False), ((12, 2, 768), False), ((12, 12, 64), False)]
)
def test_published_curves_lie_only_on_the_model_that_they_are_of(sizes: tuple[int, int, int], same: bool) -> None:
    measured = model_rows(model="bert-base-cased", **dict(zip(("layers", "heads", "width"), sizes)))
    picture = draw_models(lambda name: measured)
    (panel,) = picture.figure.axes
    assert any(line.get_linestyle() == "--" for line in panel.lines) is same
    assert ("Dashed: published curves" in picture.caption) is same
    assert "bert-base-cased: {} layers, {} heads, width {}".format(*sizes) in picture.caption
    assert ("(published: 12 layers, 12 heads, width 768)" in picture.caption) is not same


def test_networks_of_two_trainings_are_counted_apart(tmp_path: Path) -> None:
    """Trained and untrained networks were counted together: 2 of 6, where it was 2 of 3 untrained ones."""
    (row, *_) = [row for row in rows_of_residuals() if row["quantity"] == "residual" and row["place"] == "state"]
    ends = {"fresh": (1e-4, 1e-4, 1.0), "long": (1.0, 1.0, 1.0)}
    rows = [
        row | {"matrix_norm": "composite", "centre": "mean", "seed": seed, "key": f"{seed}{training}", "layer": layer}
        | {"value": (1.0, end)[layer], "training": training, "epochs": 5 * (training == "long")}
        for training, values in ends.items()
        for seed, end in enumerate(values)
        for layer in (0, 1)
    ]  # fmt: skip
    picture = components.load("figure", "residuals")(reader(tmp_path, "residuals", rows), architectures=["net"])
    assert "left after the last layer: fresh, 1 layer: net 2 of 3; long, 1 layer: net 0 of 3." in picture.caption

"""Figures of masked language models: lines and captions have the table's numbers, and what is not drawn is said."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from masked_rows import SEEDS, abouts, lengths

from rankfall import components
from rankfall.measure.context import Context
from rankfall.overview.reproduction.measure import reproduction
from rankfall.report import style, tables


def epochs(about: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        about | {"epoch": epoch, "split": split, "metric": "accuracy", "value": 0.1 * epoch + 0.02 * about["seed"]}
        for epoch in (1, 2)
        for split in ("train", "test")
    ]


def finals(about: dict[str, Any]) -> list[dict[str, Any]]:
    numbers = dict.fromkeys(("train_loss", "train_accuracy", "test_loss", "test_accuracy", "seconds"), 1.0)
    return [about | numbers | {"steps": 4, "chance": 0.05, "attainable_reason": ""}]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], pd.DataFrame]:
    folder = tmp_path_factory.mktemp("tables")
    for name, rows_of in {"extrapolation": lengths, "training": epochs, "cells": finals}.items():
        tables.write(name, [row for about in abouts() for row in rows_of(about)], folder / f"{name}.parquet")
    return lambda wanted: tables.read_frame(folder / f"{wanted}.parquet", wanted)


def drawn(name: str, read: Callable[[str], pd.DataFrame], folder: Path, **options: Any) -> style.Picture:
    with style.apply_style():
        picture: style.Picture = components.load("figure", name)(read, **options)
        style.save(picture, folder / f"{name}.png")
    return picture


def test_published_numbers_stand_beside_what_measures_the_same(read: Callable[[str], pd.DataFrame]) -> None:
    rows = reproduction(Context(table=lambda name: read(name) if name == "extrapolation" else None))
    found = {row["name"]: row for row in rows if row["name"].startswith("MLM ")}
    kept, gain = found["MLM standard kept at 04 times"], found["MLM log n less standard at 04 times"]
    assert kept["published"] == pytest.approx(0.2302 / 0.4327, abs=1e-4) and kept["ours"] == pytest.approx(0.75)
    assert kept["seeds"] == SEEDS and kept["at_published"] is False  # other text and other sizes
    assert gain["ours"] is None  # no network here has log n
    assert found["MLM standard at 01 times"]["ours"] == pytest.approx(0.41)
    assert {row["source"] for row in found.values()} == {"Su 8823", "Su 9603", "Su 9859"}
    assert all("second-hand" in row["place"] for row in found.values())

"""Guards the table that is searched many times: its rows and means are those of pandas, asked for one by one."""

import numpy as np
import pandas as pd
import pytest

from rankfall.overview.reproduction.measure import Searched, reads


def table(seed: int, cells: bool) -> pd.DataFrame:
    """Forty rows of few values, some of them missing."""
    rng = np.random.default_rng(seed)
    about = {
        "model": rng.choice(["bert", "gpt2", None], 40),
        "layer": pd.array(rng.choice([1, 2, None], 40), dtype="Int64"),
        "seed": rng.integers(0, 3, 40),
        "value": rng.choice([0.5, 2.0, 3.25, np.nan], 40),
    }
    return pd.DataFrame(about | ({"status": rng.choice(["done", "failed", "missing"], 40)} if cells else {}))


@pytest.mark.parametrize("cells", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_means_are_those_of_pandas(seed: int, cells: bool) -> None:
    frame, keys = table(seed, cells), ("model", "layer", "seed")
    searched = Searched(frame)
    for asked in ([], [("model", "bert")], [("model", "bert|gpt2"), ("layer", "2")], [("value", "0.5|2")]):
        fits = pd.Series(True, frame.index)
        for name, wanted in asked:
            fits &= pd.Series([reads(one, wanted) for one in frame[name]]) | (cells and frame.status != "done")
        expected = frame[fits & (not cells or frame.status != "missing")]
        assert list(searched.find_rows(asked)) == list(expected.index)
        means = searched.means(searched.find_rows(asked), searched.column("value"), keys)
        found = searched.name_means(means, keys)
        grouped = [(key, part.value) for key, part in expected.groupby(list(keys), dropna=False)]
        assert len(found) == len(grouped)
        for row, (key, values) in zip(found.itertuples(), grouped):
            assert [str(one) for one in row[1:4]] == [str(one) for one in key]
            assert row.number == pytest.approx(values.mean() if values.notna().all() else np.nan, nan_ok=True)
            assert [str(one) for one in frame.iloc[row.network][list(keys)]] == [str(one) for one in key]

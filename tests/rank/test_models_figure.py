"""Guards what the figure of models says of values at the floor, and of bands that end where the quantity does."""

import pandas as pd
import pytest

from rankfall.rank.models import figure as models


def table(dtype: str = "float64", spread: float = 0.1, model: str = "bert", **sizes: int) -> pd.DataFrame:
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
    measured = table(model="bert-base-cased", **dict(zip(("layers", "heads", "width"), sizes)))
    picture = models(lambda name: measured)
    (panel,) = picture.figure.axes
    assert any(line.get_linestyle() == "--" for line in panel.lines) is same
    assert ("Dashed: published curves" in picture.caption) is same
    assert f"Layers x heads x width: bert-base-cased {' x '.join(map(str, sizes))}" in picture.caption
    assert ("(published: 12 x 12 x 768)" in picture.caption) is not same

"""Guards the figures of circle and reproduction: they are drawn from tables of any shape, and say the right numbers."""

import math

import pandas as pd
import pytest

from rankfall.errors import RankfallError
from rankfall.measures.reproduction import published
from rankfall.measures.reproduction import reproduction as rows_of
from rankfall.report.figures.circle import circle
from rankfall.report.figures.reproduction import reproduction
from rankfall.report.style import Picture, applied


def rolled(architectures: list[str], shrink: float, seeds: int = 2, steps: int = 5) -> pd.DataFrame:
    """Points that come closer by a factor each step."""
    rows = []
    for architecture in architectures:
        for seed in range(seeds):
            for step in range(steps):
                for token in (0, 1):
                    x = 0.3 * shrink**step * (1 - 2 * token)
                    rows.append(
                        {
                            "task": "circle",
                            "architecture": architecture,
                            "training": "t",
                            "status": "done",
                            "seed": seed,
                        }
                        | {"key": f"{architecture}{seed}", "width": 32, "step": step, "token": token, "x": x, "y": 0.0}
                        | {"distance": 0.6 * shrink**step, "error": 0.1}
                    )
    return pd.DataFrame(rows)


def drawn(picture: Picture) -> str:
    with applied():
        picture.figure.canvas.draw()
    return picture.caption


def test_circle_counts_who_met() -> None:
    table = pd.concat([rolled(["a"], 0.1), rolled(["b"], 1.0)])
    said = drawn(circle(lambda name: table, training="t"))
    assert "circle, a: met in 2 of 2 roll-outs, median distance 0.00" in said
    assert "circle, b: met in 0 of 2 roll-outs, median distance 1.00 of that at the start, median error 0.10." in said
    assert "over 2 seeds" in said


def test_circle_with_more_panels_than_a_row_holds_and_with_lost_points() -> None:
    table = rolled([f"a{n}" for n in range(7)], 2.0)
    table.loc[table.step == 4, ["x", "distance", "error"]] = math.nan
    picture = circle(lambda name: table, training="t", columns=5)
    assert drawn(picture).count("met in 0 of 2") == 7
    shown = [panel for panel in picture.figure.axes if panel.get_visible()]
    assert len(shown) == 2 * 7 + 1  # and the scale


def test_circle_without_cells_says_so() -> None:
    with pytest.raises(RankfallError, match="no finished cell of training 'u'"):
        circle(lambda name: rolled(["a"], 1.0), training="u")


def paths(accuracy: float) -> pd.DataFrame:
    cell = {
        "task": "sorting",
        "training": "t",
        "architecture": "net",
        "depth": 6,
        "status": "done",
        "residual": "add",
        "mlp": "none",
    }
    rows = [cell | {"kind": "whole", "seed": seed, "accuracy": accuracy, "evaluation": None} for seed in (0, 1)]
    rows += [cell | {"kind": "chance", "seed": 0, "accuracy": 0.339, "evaluation": None}]
    return pd.DataFrame(rows).assign(length=pd.array([None] * 3, "Int64"), paths=pd.array([None] * 3, "Int64"))


@pytest.mark.parametrize(("accuracy", "held"), [(0.98, 1), (0.5, 0)])
def test_reproduction_counts_what_holds(accuracy: float, held: int) -> None:
    table = pd.DataFrame(rows_of({"paths": paths(accuracy)}.get))
    said = drawn(reproduction(lambda name: table))
    assert f"{held} of 2 comparisons hold" in said  # chance is 0.339, not 0.1
    assert f"sorting whole: published = 0.98, ours {accuracy:.3g} (training=t, architecture=net)." in said
    assert f"{len(list(published())) - 2} published numbers are not measured" in said


def test_reproduction_of_nothing_is_still_a_figure() -> None:
    assert "0 of 0 comparisons hold" in drawn(reproduction(lambda name: pd.DataFrame(rows_of(lambda name: None))))

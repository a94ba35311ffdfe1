"""Attribution by layer in real models, one row of panels a model and phase, with the published medians of own shares."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rankfall.identity.attribution.figure import drawn
from rankfall.rank.models.figure import short
from rankfall.report.account import seeds
from rankfall.report.looks import label
from rankfall.report.style import Picture

if TYPE_CHECKING:
    from pandas import DataFrame

TABLES = ["model_attribution"]


def model_attribution(read: "Callable[[str], DataFrame]", *, models: list[str] = []) -> Picture:
    """`models`: which ones, in order; default all."""
    from pandas import concat

    table = read("model_attribution")
    found = table.groupby(["model", "phase"], sort=True)
    networks = {(model, phase): part for (model, phase), part in found if not models or model in models}
    order = {name: place for place, name in enumerate(models)}
    names = sorted(networks, key=lambda each: (order.get(each[0], 0), each))
    shown = {f"{label(short(model))}, {phase}": networks[model, phase] for model, phase in names}
    every = (
        concat([part.assign(line=name, seed=part.seed.fillna(-1)) for name, part in shown.items()]) if shown else table
    )
    lengths = every["length"].unique()
    about = f" Means over {seeds(every, ['line']) if shown else 'nothing'}."
    return drawn(shown, about, int(lengths[0]) if len(lengths) == 1 else None, published=True)

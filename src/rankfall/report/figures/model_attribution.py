"""Attribution by layer in real models, one row of panels a model and phase, with the published medians of own shares."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rankfall.report.figures.attribution import drawn
from rankfall.report.figures.models import short
from rankfall.report.style import Picture

if TYPE_CHECKING:
    from pandas import DataFrame

TABLES = ["model_attribution"]


def model_attribution(read: "Callable[[str], DataFrame]", *, models: list[str] = []) -> Picture:
    """`models`: which ones, in order; default all."""
    table = read("model_attribution")
    found = table.groupby(["model", "phase"], sort=True)
    networks = {(model, phase): part for (model, phase), part in found if not models or model in models}
    order = {name: place for place, name in enumerate(models)}
    names = sorted(networks, key=lambda each: (order.get(each[0], 0), each))
    return drawn({f"{short(model)}, {phase}": networks[model, phase] for model, phase in names}, published=True)

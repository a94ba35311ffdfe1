"""Attribution by layer in real models, one row of panels per model and phase, with the published medians of own shares."""

from rankfall.annotations import Read
from rankfall.identity.attribution.figure import draw_networks
from rankfall.report.account import seeds
from rankfall.report.model_names import name_measurements
from rankfall.report.style import Picture

TABLES = ["model_attribution"]


def model_attribution(read: Read, *, models: list[str] = []) -> Picture:
    """Draw the models.

    `models`: which ones, in order; by default all.
    """
    table = read("model_attribution")
    table = table[table.model.isin(models)] if models else table
    seeded = table.seed.notna().any()  # pretrained weights have no seed
    every = table.assign(line=name_measurements(table), seed=table.seed.fillna(-1))
    order = {name: place for place, name in enumerate(models)}
    names = (
        every.assign(place=every.model.map(order).fillna(0))
        .sort_values(["place", "model", "phase", "line"])
        .line.unique()
    )
    shown = {name: every[every.line == name] for name in names}
    lengths = every["length"].unique()
    about = f" Means over {seeds(every, ['line'])}." if seeded else ""
    return draw_networks(shown, about, int(lengths[0]) if len(lengths) == 1 else None, published=True)

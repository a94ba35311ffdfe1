"""Rankfall: what attention loses with depth.

Measure a model, from Python:

    from rankfall import residuals, order_of_contraction, collapse_law, token_identity, attribution, watch

Write a component, a task, a measure or a claim of your own:

    from rankfall import Dataset, Linear, Position, Sizes, Table, split_samples

These names are stable: one that is renamed keeps its old name for a version. Each is imported on first use, so `import rankfall` takes
milliseconds, and a key counts only the module that defines it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankfall.api.law import Law as Law
    from rankfall.api.law import collapse_law as collapse_law
    from rankfall.api.order import Order as Order
    from rankfall.api.order import order_of_contraction as order_of_contraction
    from rankfall.api.residuals import Residuals as Residuals
    from rankfall.api.residuals import residuals as residuals
    from rankfall.api.tokens import Attribution as Attribution
    from rankfall.api.tokens import TokenIdentity as TokenIdentity
    from rankfall.api.tokens import attribution as attribution
    from rankfall.api.tokens import token_identity as token_identity
    from rankfall.claims.rows import row as evidence_row
    from rankfall.nets.dropout import no_dropout as no_dropout
    from rankfall.nets.positions._base import Position as Position
    from rankfall.nets.primitives import Initial as Initial
    from rankfall.nets.primitives import Linear as Linear
    from rankfall.nets.primitives import Lookup as Lookup
    from rankfall.nets.primitives import Sizes as Sizes
    from rankfall.nets.primitives import constant as constant
    from rankfall.nets.primitives import parameter as parameter
    from rankfall.report.cell_numbers import at_last as last_layer
    from rankfall.report.cell_numbers import plain as column_as_numbers
    from rankfall.report.claim import Claim as Claim
    from rankfall.report.claim import Extension as Extension
    from rankfall.report.claim import Threshold as Threshold
    from rankfall.report.claim import band_of as band_of
    from rankfall.report.claim import compare as compare
    from rankfall.report.claim import is_on as is_on
    from rankfall.report.claim import judge as judge
    from rankfall.report.colours import colours as colours_of
    from rankfall.report.headlines import Headline as Headline
    from rankfall.report.lines import legend_below as legend_below
    from rankfall.report.lines import lines as draw_lines
    from rankfall.report.lines import summary as summarise_lines
    from rankfall.report.page.chart import Chart as Chart
    from rankfall.report.page.question import ask_range as ask_range
    from rankfall.report.published_numbers import read_published as read_published
    from rankfall.report.schema import Column as Column
    from rankfall.report.schema import Table as Table
    from rankfall.report.style import Picture as Picture
    from rankfall.tasks._dataset import Dataset as Dataset
    from rankfall.tasks._dataset import Split as Split
    from rankfall.tasks._dataset import majority_chance as majority_chance
    from rankfall.tasks._dataset import split_samples as split_samples
    from rankfall.train.objectives._base import Graded as Graded
    from rankfall.train.objectives._base import outputs as call_network
    from rankfall.watch.start import watch as watch

__version__ = "0.3.0"

PUBLIC = {  # name -> its module, and its name there if that differs
    "residuals": "rankfall.api.residuals",
    "Residuals": "rankfall.api.residuals",
    "order_of_contraction": "rankfall.api.order",
    "Order": "rankfall.api.order",
    "collapse_law": "rankfall.api.law",
    "Law": "rankfall.api.law",
    "token_identity": "rankfall.api.tokens",
    "TokenIdentity": "rankfall.api.tokens",
    "attribution": "rankfall.api.tokens",
    "Attribution": "rankfall.api.tokens",
    # for components
    "Sizes": "rankfall.nets.primitives",
    "Initial": "rankfall.nets.primitives",
    "Linear": "rankfall.nets.primitives",
    "Lookup": "rankfall.nets.primitives",
    "parameter": "rankfall.nets.primitives",
    "constant": "rankfall.nets.primitives",
    "Position": "rankfall.nets.positions._base",
    "no_dropout": "rankfall.nets.dropout",
    "Dataset": "rankfall.tasks._dataset",
    "Split": "rankfall.tasks._dataset",
    "split_samples": "rankfall.tasks._dataset",
    "majority_chance": "rankfall.tasks._dataset",
    "Graded": "rankfall.train.objectives._base",
    "call_network": "rankfall.train.objectives._base:outputs",
    # for measures, figures and claims
    "Table": "rankfall.report.schema",
    "Column": "rankfall.report.schema",
    "Picture": "rankfall.report.style",
    "draw_lines": "rankfall.report.lines:lines",
    "summarise_lines": "rankfall.report.lines:summary",
    "legend_below": "rankfall.report.lines",
    "colours_of": "rankfall.report.colours:colours",
    "Headline": "rankfall.report.headlines",
    "last_layer": "rankfall.report.cell_numbers:at_last",
    "column_as_numbers": "rankfall.report.cell_numbers:plain",
    "Chart": "rankfall.report.page.chart",
    "ask_range": "rankfall.report.page.question",
    "read_published": "rankfall.report.published_numbers",
    "Claim": "rankfall.report.claim",
    "Threshold": "rankfall.report.claim",
    "Extension": "rankfall.report.claim",
    "band_of": "rankfall.report.claim",
    "compare": "rankfall.report.claim",
    "judge": "rankfall.report.claim",
    "is_on": "rankfall.report.claim",
    "evidence_row": "rankfall.claims.rows:row",
}
ROOMS = ("watch",)  # modules that are public as they are
__all__ = [
    "Attribution",
    "Chart",
    "Claim",
    "Column",
    "Dataset",
    "Extension",
    "Graded",
    "Headline",
    "Initial",
    "Law",
    "Linear",
    "Lookup",
    "Order",
    "Picture",
    "Position",
    "Residuals",
    "Sizes",
    "Split",
    "Table",
    "Threshold",
    "TokenIdentity",
    "ask_range",
    "attribution",
    "band_of",
    "call_network",
    "collapse_law",
    "colours_of",
    "column_as_numbers",
    "compare",
    "constant",
    "draw_lines",
    "evidence_row",
    "is_on",
    "judge",
    "last_layer",
    "legend_below",
    "majority_chance",
    "no_dropout",
    "order_of_contraction",
    "parameter",
    "read_published",
    "residuals",
    "split_samples",
    "summarise_lines",
    "token_identity",
    "watch",
]


def __getattr__(name: str) -> object:
    if name not in PUBLIC and name not in ROOMS:
        raise AttributeError(f"module 'rankfall' has no attribute {name!r}")
    from importlib import import_module

    if name in ROOMS:
        return import_module(f"rankfall.{name}")
    module, _, attribute = PUBLIC[name].partition(":")
    return getattr(import_module(module), attribute or name)


def __dir__() -> list[str]:
    return [*globals(), *PUBLIC, *ROOMS]

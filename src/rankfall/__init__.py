"""Rankfall: what attention loses with depth.

Measure a model, from Python:

    from rankfall import residuals, order_of_contraction, collapse_law, token_identity, attribution, watch

Write a component, a task, a measure or a claim of your own:

    from rankfall import Dataset, Linear, Position, Sizes, Table, split_samples

These names are stable: one that is renamed keeps its old name for a version. Each is imported on first use, so `import rankfall` takes
milliseconds, and a key counts only the module that defines it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `_read_public` reads these lines: one name each, `from MODULE import NAME as PUBLIC`
    from rankfall.annotations import Axes as Axes
    from rankfall.annotations import DataFrame as DataFrame
    from rankfall.annotations import Series as Series
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
    from rankfall.design import Architecture as Architecture
    from rankfall.design import Component as Component
    from rankfall.design import attention_alone as attention_alone
    from rankfall.errors import RankfallError as RankfallError
    from rankfall.identity.attribution.mixing import mixing as mixing_shares
    from rankfall.identity.attribution.mixing import roll_out as roll_out
    from rankfall.identity.cells import cell_views as cell_views
    from rankfall.identity.influence.averaging import agreement as agreement
    from rankfall.identity.influence.averaging import average_uniformly as average_uniformly
    from rankfall.identity.influence.averaging import in_squares as in_squares
    from rankfall.identity.influence.measure import best as best_gains
    from rankfall.identity.influence.measure import measure_shares as influence_shares
    from rankfall.identity.influence.measure import stack as influence_stack
    from rankfall.identity.model_views import model_views as model_views
    from rankfall.identity.views import KINDS as TOKEN_KINDS
    from rankfall.identity.views import AttentionView as AttentionView
    from rankfall.measure.context import Context as Context
    from rankfall.measure.context import Rows as Rows
    from rankfall.measure.models import make_request as model_request
    from rankfall.measure.shared import Evidence as Evidence
    from rankfall.measure.shared import evidence_row as evidence_row
    from rankfall.models.source import ModelSource as ModelSource
    from rankfall.models.subject import Subject as Subject
    from rankfall.models.subject import subject as open_subject
    from rankfall.models.texts import Texts as Texts
    from rankfall.nets.network import Network as Network
    from rankfall.nets.network import Shape as Shape
    from rankfall.nets.network import build as build_network
    from rankfall.nets.normalisers.zero_sum import zero_sum as zero_sum
    from rankfall.nets.positions._base import Position as Position
    from rankfall.nets.primitives import Initial as Initial
    from rankfall.nets.primitives import Linear as Linear
    from rankfall.nets.primitives import Lookup as Lookup
    from rankfall.nets.primitives import Sizes as Sizes
    from rankfall.nets.primitives import constant as constant
    from rankfall.nets.primitives import no_dropout as no_dropout
    from rankfall.nets.primitives import parameter as parameter
    from rankfall.position.probe.measure import PROBED as PROBED_DESIGN
    from rankfall.position.rows import distinct as distinct_rows
    from rankfall.position.rows import last_rows as last_rows
    from rankfall.position.rows import random_networks as position_networks
    from rankfall.random_streams import stream as random_stream
    from rankfall.rank.centred.attention import step as centred_block
    from rankfall.rank.centred.scaled import begin as centred_state
    from rankfall.rank.orders.measure import ALONE as ORDER_DESIGN
    from rankfall.rank.orders.slopes import measure_slopes as measure_slopes
    from rankfall.rank.orders.slopes import networks as order_networks
    from rankfall.rank.orders.slopes import start as order_states
    from rankfall.rank.residual import relative_residual as relative_residual
    from rankfall.rank.residuals.models import parts_of as branch_parts
    from rankfall.report.claim import Claim as Claim
    from rankfall.report.colours import BLUE as BLUE
    from rankfall.report.colours import CHANCE as CHANCE_COLOUR
    from rankfall.report.colours import GREY as GREY
    from rankfall.report.colours import RED as RED
    from rankfall.report.colours import colours as colours_of
    from rankfall.report.decision import Band as Band
    from rankfall.report.decision import Decision as Decision
    from rankfall.report.decision import Extension as Extension
    from rankfall.report.decision import Read as Read
    from rankfall.report.decision import Threshold as Threshold
    from rankfall.report.decision import band as band
    from rankfall.report.decision import band_of as band_of
    from rankfall.report.decision import change_of as change_of
    from rankfall.report.decision import compare as compare
    from rankfall.report.decision import evidence_rows as evidence_rows
    from rankfall.report.decision import is_on as is_on
    from rankfall.report.decision import judge as judge
    from rankfall.report.decision import within as within
    from rankfall.report.headlines import Headline as Headline
    from rankfall.report.headlines import at_last as last_layer
    from rankfall.report.headlines import by_name as headlines_by_name
    from rankfall.report.headlines import plain as column_as_numbers
    from rankfall.report.labels import join as join_words
    from rankfall.report.labels import many as count_words
    from rankfall.report.lines import below as text_below
    from rankfall.report.lines import collect_labels as collect_labels
    from rankfall.report.lines import legend_below as legend_below
    from rankfall.report.lines import lines as draw_lines
    from rankfall.report.lines import summary as summarise_lines
    from rankfall.report.page.chart import Chart as Chart
    from rankfall.report.page.question import TableQuestion as TableQuestion
    from rankfall.report.page.question import ask_range as ask_range
    from rankfall.report.part_numbers import by_parts as numbers_by_parts
    from rankfall.report.part_numbers import is_missing as is_missing
    from rankfall.report.part_numbers import row_of as row_of_parts
    from rankfall.report.published_numbers import read_published as read_published
    from rankfall.report.schema import Column as Column
    from rankfall.report.schema import Table as Table
    from rankfall.report.schema import declare_table as declare_table
    from rankfall.report.selection import select as select_rows
    from rankfall.report.settings import MADE_OF as ARCHITECTURE_PARTS
    from rankfall.report.settings import number_variants as number_variants
    from rankfall.report.style import WIDTH as FIGURE_WIDTH
    from rankfall.report.style import Picture as Picture
    from rankfall.report.style import canvas as make_canvas
    from rankfall.tasks._dataset import Dataset as Dataset
    from rankfall.tasks._dataset import Split as Split
    from rankfall.tasks._dataset import majority_chance as majority_chance
    from rankfall.tasks._dataset import split_samples as split_samples
    from rankfall.train.objectives._base import Graded as Graded
    from rankfall.train.objectives._base import outputs as call_network
    from rankfall.use.training import TESTED as TESTED_ROWS
    from rankfall.watch.start import watch as watch

__version__ = "0.3.0"

ROOMS = ("watch",)  # modules that are public as they are


def _read_public() -> dict[str, str]:
    """Return the names that the imports above give to type checkers: name -> its module, and its name there if that differs."""
    with open(__file__, encoding="utf-8") as file:
        imports = [line.split() for line in file if line.startswith("    from rankfall.")]
    return {
        public: module if public == name else f"{module}:{name}"
        for _, module, _, name, _, public in imports
        if public not in ROOMS
    }


PUBLIC = _read_public()
__all__ = [*PUBLIC, *ROOMS]


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

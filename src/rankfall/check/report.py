"""The check of a module: one report for each of its residual streams."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from timeit import repeat
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.check.attention import attention
from rankfall.check.bands import bands_for, kind_of, no_band, real_models, say_kind
from rankfall.check.checks.stream import describe_cut
from rankfall.check.equal import distinct
from rankfall.check.gradients import gradients, say_missing
from rankfall.check.hidden import hidden_tokens, ignore_hidden_rows
from rankfall.check.interventions import interventions, without_branches
from rankfall.check.layer import LayerReport, StreamReport, fill_state_columns, finite_mean
from rankfall.check.named import run_checks
from rankfall.check.orders import orders
from rankfall.check.recording import RecordedStream, record
from rankfall.errors import RankfallError
from rankfall.rank.residual import floor_of, relative_residual
from rankfall.report.labels import many
from rankfall.streams.arguments import arguments_of, as_format, call_model, copy_of, keep_random_state
from rankfall.streams.cuts import Variant, cut_by, states_of, variants_of
from rankfall.streams.examine import FAILURES, Examined, examine
from rankfall.streams.flow import Flow
from rankfall.streams.sized import has_norm

ROUNDING = 1e-14  # a smaller residual in float64 is rounding
PAYS = 1.3  # several threads are used if they are this many times as fast as one


def check(
    model: nn.Module,
    inputs: Any,
    *,
    blocks: Any = None,
    name: str = "",
    changes: bool = True,
    loss: Callable[[Any], Tensor] | None = None,
    build: Callable[..., Any] | None = None,
    only: tuple[str, ...] = (),
) -> list[StreamReport]:
    """Return the report of each stream, with the results of the named checks.

    `changes`: whether to try interventions. `loss`: a function of the output. `build`: a function of `width` or `depth` that returns
    the module.
    """
    with keep_random_state(), fitting_threads(model, inputs), torch.no_grad():
        examined = examine(model, inputs, blocks=blocks, name=name)
        needed = {name: x.requires_grad for name, x in examined.model.named_parameters() if x.dim() > 1}
        frozen = {name for name, needs in needed.items() if not needs and any(needed.values())}
        hidden = {flow.name: hidden_tokens(examined, flow)[0] for flow in examined.flows}
        examined.flows = [ignore_hidden_rows(examined, flow, hidden[flow.name]) for flow in examined.flows]
        recordings = {flow.name: record_stream(examined, flow, changes) for flow in examined.flows}
        for recording in recordings.values():
            recording.loss, recording.build, recording.frozen = loss, build, frozen
            recording.hidden, recording.streams = hidden[recording.flow.name], list(recordings.values())
            link_parts(recording, recordings)
        for result in run_checks(recordings.values(), only):
            recordings[result.stream].report.results.append(result)
    return [recording.report for recording in recordings.values()]


@contextmanager
def fitting_threads(model: nn.Module, inputs: Any) -> Iterator[None]:
    """Compute with one thread unless several are faster, and restore their number.

    The threads of a small model mostly wait for each other, and on a busy machine they wait for other processes.
    """
    before = torch.get_num_threads()
    seconds: dict[int, float] = {}
    try:
        with suppress(*FAILURES), torch.no_grad():  # `examine` says what is wrong
            copied, arguments = copy_of(model, torch.float32), as_format(arguments_of(inputs), torch.float32)
            for count in (before, 1) if before > 1 else ():
                torch.set_num_threads(count)
                seconds[count] = min(repeat(lambda: call_model(copied, arguments), number=1, repeat=2))
        torch.set_num_threads(1 if len(seconds) == 2 and seconds[1] <= PAYS * seconds[before] else before)
        yield
    finally:
        torch.set_num_threads(before)


def link_parts(recording: RecordedStream, recordings: dict[str, RecordedStream]) -> None:
    """Mark a stream that is a part of a longer sequence of blocks. Fill in where it is cut, and the residual before the first part."""
    flow, report = recording.flow, recording.report
    report.part |= bool(flow.missing or flow.unmeasured or flow.touching)
    if flow.follows not in recordings:
        return
    before = recordings[flow.follows].report
    report.part = before.part = True
    report.cut = "" if flow.resized else describe_cut(report, before, flow.joins)
    while flow.follows in recordings:
        flow = recordings[flow.follows].flow
    report.start = recordings[flow.name].report.layers[0].residual


def record_stream(examined: Examined, flow: Flow, changes: bool) -> RecordedStream:
    """Record a stream and return its numbers, its reference bands and, with `changes`, its interventions."""
    states = states_of(examined, flow)
    finite = all(bool(state.isfinite().all()) for state in states)
    if not finite or flow.around:
        kind = "a skip goes around the layers" if finite else "states are not finite"
        report = report_states(examined, flow, states, kind, judged=False)
        if finite:
            report.layers[-1] = LayerReport(flow.depth, flow.layers[-1])  # what the last layer returns is no state
        return RecordedStream(examined, flow, report, states)
    normed = has_norm(examined, flow)
    report = measure_stream(examined, flow, normed)
    report.worst = find_steepest_loss(report.layers)
    report.bands = bands_for(flow, normed)
    report.real = real_models(kind_of(flow, normed), flow.depth, flow.width) if flow.skips else []
    if why := no_band(flow, normed):
        report.reasons["reference band"] = why
    if changes:
        if report.worst is not None:
            report.without = without_branches(examined, flow, report.worst)
        report.interventions = interventions(examined, flow)
    return record(examined, flow, report)


def measure_stream(examined: Examined, flow: Flow, normed: bool = True) -> StreamReport:
    """Return the numbers of the unchanged model, by layer and by variant."""
    report = report_states(examined, flow, states_of(examined, flow), say_kind(flow, normed))
    layers = report.layers
    report.notes += say_outside(flow)
    report.reasons = {
        "attention": try_part(lambda: attention(examined, flow, report)),
        "orders": try_part(lambda: orders(examined, flow, layers)),
    }
    with torch.enable_grad():
        report.reasons["gradients"] = gradients(examined, flow, layers)
    report.notes += say_missing(flow, layers)
    report.reasons["distinct"] = try_part(lambda: distinct(examined, flow, report))
    for variant in variants_of(flow):

        def cut(variant: Variant = variant) -> str:
            states = states_of(examined, flow, cut_by(variant))
            report.variants[variant.name] = [finite_mean(relative_residual(state)) for state in states]
            return ""

        report.reasons[variant.name] = try_part(cut)
    report.reasons = {name: reason for name, reason in report.reasons.items() if reason}
    return report


def report_states(
    examined: Examined, flow: Flow, states: list[Tensor], kind: str, *, judged: bool = True
) -> StreamReport:
    """Return a report with the columns that need only the states of layers 0 .. L, each (S, T, D).

    Which branches mix tokens is found by changes of the states, so it is not known of states that cannot be judged.
    """
    layers = [LayerReport(0)]
    for number, name in enumerate(flow.layers, 1):
        parts = [f"{branch.name} {branch.kind}" for branch in flow.of_layer(number)] if judged else []
        layers.append(LayerReport(number, name, parts))
    for state, layer in zip(states, layers):
        fill_state_columns(state, layer)
    samples, tokens = states[0].shape[:2]
    return StreamReport(
        flow.name, flow.summary(kinds=judged), kind, flow.depth, flow.width, tokens, samples, flow.causal and judged, layers,
        axes=flow.layout.tokens, floor=floor_of(states[0].dtype), judged=judged, notes=[*examined.notes],
    )  # fmt: skip


def say_outside(flow: Flow) -> list[str]:
    """Return a note on the stream's additions outside all layers."""
    places = list(dict.fromkeys(name or "the model itself" for name in flow.outside))
    listed = ", ".join(places[:4]) + " and others" * (len(places) > 4)
    additions = f"{many(len(flow.outside), 'residual addition')} outside all layers, in {listed}"
    return [f"{additions}: unchanged in all variants"] if places else []


def try_part(function: Callable[[], str]) -> str:
    """Fill in a part of the report. Return why it stays empty, or ''. A model that fails with edited states still has its other numbers."""
    try:
        return function()
    except (*FAILURES, RankfallError) as error:
        return f"it fails where states are changed: {' '.join(str(error).split())[:120]}"


def find_steepest_loss(layers: list[LayerReport]) -> int | None:
    """Return the layer with the smallest residual relative to the layer before it, or None."""
    ratios = [
        (max(after.residual, ROUNDING) / before.residual, after.layer)
        for before, after in pairwise(layers)
        if before.residual is not None and before.residual > ROUNDING and after.residual is not None
    ]
    return min(ratios)[1] if ratios else None

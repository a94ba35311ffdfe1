"""Each alarm is raised at the step and layer where its cause is, once, and not in a healthy training."""

import logging
import re

import pytest
import torch
from torch import nn
from watched import descend, gpt, watch_step, words

import rankfall
from rankfall.watch.alarms import Alarms, events_of_run
from rankfall.watch.columns import LOSS_NOT_FINITE

HEALTHY = {"entropy": 1.5, "residual": 0.6, "residual_floor": False, "norm": 4.0, "gradient_queries": 0.1}
HEALTHY |= {"gradient_keys": 0.1, "dead_units": 0.05, "broken": 0.0, "loss": 3.0, "dtype": "float32"}
HEALTHY |= {"gradient_reason": "", "loss_reason": "", "tokens": 512}


def run(changes, logs=14, depth=3):
    """Rows of a healthy run that wobbles, with changes {(log, layer or None for all): columns}."""
    rows = []
    for log in range(logs):
        for layer in range(depth + 1):
            wobble = 1 + 0.01 * ((7 * log + layer) % 5)
            row = {name: value * wobble if isinstance(value, float) else value for name, value in HEALTHY.items()}
            row |= {"step": 10 * log, "layer": layer, "block": f"h.{layer - 1}" if layer else ""}
            rows.append(row | changes.get((log, layer), {}) | changes.get((log, None), {}))
    return rows


@pytest.mark.parametrize(
    ("changes", "kind", "step", "layer", "text"),
    [
        ({(9, 2): {"entropy": 0.05}}, "entropy", 90, 2, r"layer 2 \(h.1\) looks at one token: its entropy is 0.05"),
        ({(4, 3): {"residual_floor": True, "residual": 1e-7}}, "floor", 40, 3, r"equal up to the rounding of float32"),
        ({(9, 3): {"residual": 0.003}}, "rank", 90, 3, r"layer 3 \(h.2\) become equal: residual 0.003, after 0.62.* at first"),
        ({(9, 1): {"norm": 90.0}}, "norm", 90, 1, r"layer 1 \(h.0\) are 22.* times as long"),
        ({(9, 2): {"dead_units": 0.5}}, "dead", 90, 2, r"50% of the units of layer 2 \(h.1\) are dead, after 5% at first"),
        ({(6, n): {"broken": 1.0, "residual": None} for n in (2, 3)}, "nan", 60, 2, r"first that is not finite; that of layer 1 is finite"),
        ({(6, None): {"broken": 1.0}}, "nan", 60, 0, "input of the first block is not finite; all states of step 50"),
        ({(6, None): {"loss": None, "loss_reason": LOSS_NOT_FINITE}}, "nan", 60, None, "not finite, but the states of all layers are"),
    ],
)  # fmt: skip
def test_an_alarm_names_step_and_layer(changes, kind, step, layer, text):
    (event,) = events_of_run(run(changes))
    assert (event.kind, event.step, event.layer) == (kind, step, layer)
    assert re.search(text, event.text)


def test_a_loss_spike_names_the_layer_that_moved_before_it():
    changes = {(10, 2): {"norm": 11.0}, (11, 2): {"norm": 15.0}, (11, 3): {"norm": 30.0}, (11, None): {"loss": 8.0}}
    changes[11, 2] |= changes[11, None]
    changes[11, 3] |= changes.pop((11, None))
    changes |= {(11, n): {"loss": 8.0} for n in (0, 1)}
    (event,) = events_of_run(run(changes))
    assert (event.kind, event.step, event.layer) == ("loss", 110, 2)
    assert "layer 2 (h.1) moved first: at step 100 its norm is" in event.text
    (alone,) = events_of_run(run({(11, None): {"loss": 8.0}}))
    assert alone.layer is None and alone.text.endswith("no layer moved before it")


def test_an_alarm_is_raised_once_until_it_has_ended():
    values = [1.5, 0.05, 0.15, 0.05, 0.3, 0.05]
    events = events_of_run(run({(log, 2): {"entropy": value} for log, value in enumerate(values)}))
    assert [one.step for one in events] == [10, 50]
    few = {(log, None): {"tokens": 64, "dead_units": 0.5 if log > 8 else 0.05} for log in range(14)}
    assert events_of_run(run(few)) == []  # units that serve few tokens
    assert events_of_run(run({})) == [] and Alarms().update(run({}, 1)) == []


def test_a_training_that_collapses_reports_it(caplog):
    """The tokens of the last layer became equal, residual 0.9 to 0.003, and no alarm rang: it is far above rounding."""
    model = gpt()
    block = model.transformer["h"][2]
    scale = torch.ones(())
    block.register_forward_hook(lambda module, args, x: x.mean(1, keepdim=True) + scale * (x - x.mean(1, keepdim=True)))
    with rankfall.watch(model, every=1, to=[].extend), caplog.at_level(logging.WARNING, logger="rankfall.watch"):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for step in range(10):
            scale.fill_(0.5**step)
            optimizer.zero_grad()
            model(words(step), words(99))[1].backward()
            optimizer.step()
    (message,) = [message for message in caplog.messages if "become equal" in message]
    assert "layer 3 (transformer.h.2) become equal: residual 0.0" in message


def test_a_slow_growth_is_seen_against_the_first_logs():
    (event,) = events_of_run(run({(log, 1): {"norm": 4.0 * 1.2**log} for log in range(45)}, 45))
    assert (event.kind, event.layer) == ("norm", 1) and "times as long as at first" in event.text


def test_noise_of_small_batches_is_no_spike():
    noise = [3.3, 4.0, 3.6, 3.3, 3.5, 3.2, 3.3, 3.8, 3.3, 3.2, 4.3, 3.1]
    losses = [9.0, 6.0, 5.0, 4.4, 4.0, *noise, *noise, 6.5]
    changes = {(log, None): {"loss": loss} for log, loss in enumerate(losses)}
    (event,) = events_of_run(run(changes, len(losses)))
    assert (event.kind, event.step) == ("loss", 10 * (len(losses) - 1))


@pytest.mark.parametrize(
    ("where", "sample", "step", "text"),
    [
        ("transformer.h.1", 11, 3, r"the state of layer 2 \(transformer.h.1\) is the first .* that of layer 1 is finite"),
        ("transformer.ln_f", 0, 3, "the loss is not finite, but the states of all layers are"),
        ("gradient", 0, 4, r"by gradients of step 3: .* but the gradient of layer 2 \(transformer.h.1\) was not"),
    ],
)  # fmt: skip
def test_the_producer_of_nan_is_named_wherever_it_is(where, sample, step, text):
    model, events, now = gpt(), [], [0]
    if where == "gradient":
        weight = model.transformer["h"][1].attn.c_attn.weight
        weight.register_hook(lambda gradient: gradient * float("nan") if now[0] == 3 else gradient)
    else:
        spoil = torch.zeros(16, 1, 1)
        spoil[sample] = float("nan")
        module = model.get_submodule(where)
        module.register_forward_hook(
            lambda module, args, output: output.masked_fill(spoil.isnan(), torch.nan) if now[0] == 3 else output
        )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with rankfall.watch(model, every=1, to=[].append, alarms=events.append):
        for now[0] in range(1, 6):
            descend(model, optimizer, words(now[0], 16), words(99, 16))
    (event,) = events
    assert (event.kind, event.step) == ("nan", step) and re.search(text, event.text)


def test_dead_units_are_counted():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 10, batch_first=True), 2)
    with torch.no_grad():
        model.layers[1].linear1.bias[:4] = -100.0
    rows = watch_step(model, torch.randn(4, 6, 8), rate=0.0)
    assert rows[0]["dead_units"] is None and rows[1]["dead_units"] < 0.2 and rows[2]["dead_units"] >= 0.4

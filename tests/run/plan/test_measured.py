"""Guards that a figure which names what no measure was asked for is refused by the plan: heads, tolerances, lengths, norms, columns."""

from typing import Any

import pytest
from plans import changed, refusal

from rankfall.run.plan import make_plan

ALL = {
    "residuals": {"cells": {"architecture": "san"}},
    "law": {},
    "bert": {"measure": "model_residuals", "model": "bert-base-cased", "seeds": 1},
    "bert_tokens": {"measure": "model_token_identity", "model": "bert-base-cased"},
    "influence": {},
    "orders": {"heads": [1, 2]},
    "more_orders": {"measure": "orders", "heads": [4]},
    "probe": {"attentions": ["multihead", {"name": "gau", "key_width": 8}]},
    "probe_trained": {"cells": {"task": "probe"}},
    "states": {},
    "attention_identity": {"cells": {"architecture": "san", "task": "sorting"}, "tolerances": [1e-3, 1e-6]},
    "token_identity": {"cells": {"architecture": "san", "task": "sorting"}},
    "attribution": {"cells": {"architecture": "san", "task": "sorting"}},
    "bert_weights": {"measure": "model_attention_identity", "model": "bert-base-cased", "lengths": [16, 32]},
    "bert_law": {"measure": "model_law", "model": "bert-base-cased", "variants": ["SAN"]},
    "cell_influence": {"cells": {"architecture": "causal"}},
}


def drawn_of_all(figure: str, **options: Any) -> dict[str, Any]:
    """Of every table that a figure's options are about."""
    config = changed("measures", ALL, changed("architectures/causal", {"mask": "causal"}))
    config = changed("tasks/probe", {"length": 8, "lengths": [6, 8, 12]}, config)
    more = [
        {"task": "sorting", "architecture": "causal", "training": "short", "seed": 0, "depth": 2},
        {"task": "probe", "architecture": "san", "training": "short", "seed": 0, "depth": 2, "position": "none"},
    ]
    config["grid"] += more
    return changed("figures", {"one": {"figure": figure, **options}}, config)


NOT_MEASURED = {
    "heads": ("orders", {"heads": 3}, "heads: 3 is not measured; there will be: 1, 2, 4", ""),
    "no heads": ("orders", {"heads": 0}, "heads: 0 is out of range; allowed: >= 1", ""),
    "tolerance": (
        "together",
        {"tolerance": 1e-10},
        "tolerance: 1e-10 is not measured; there will be: 0.001, 1e-06",
        "",
    ),
    "no tolerance": ("together", {"tolerance": -1.0}, "tolerance: -1.0 is not measured", "1e-06"),
    "tokens": ("probe", {"tokens": 31}, "tokens: 31 is not measured; there will be: 32", ""),
    "attentions": ("probe", {"attentions": ["linear"]}, "'linear' is not measured; there will be: multihead, gau", ""),
    "lengths": ("effective_attention", {"tokens": 99}, "tokens: 99 is not measured; there will be: 16, 32", ""),
    "variants": ("model_law", {"variants": ["SAN+skip"]}, "'SAN+skip' is not measured; there will be: SAN", ""),
    "phases": (
        "model_token_identity",
        {"phases": ["pretrained"]},
        "'pretrained' is not measured; there will be: init",
        "",
    ),
    "norm": ("residuals", {"norm": "spectral"}, "norm: 'spectral' is not measured; there will be: composite", "linf"),
    "best": (
        "models",
        {"centre": "best"},
        "centre: 'best' is not measured; there will be: mean; a measure has it with `best_s",
        "",
    ),
    "columns of states": (
        "states",
        {"lines": ["archtecture"]},
        "'archtecture' is not a column of table 'states'",
        "'architecture'",
    ),
    "an axis of words": (
        "states",
        {"x": "architecture"},
        "x: column 'architecture' cannot be an axis",
        "depth",
    ),
    "an axis of seeds": ("sweep", {"lines": ["architecture"], "x": "seed"}, "column 'seed' cannot be an axis", "layer"),
    "cells of the second table": (
        "influence",
        {"architecture": "san"},
        "no cell that it could draw has architecture san",
        "causal",
    ),
    "columns": ("circle", {"columns": 0}, "columns: 0 is out of range; allowed: >= 1", ""),
    "limit": ("circle", {"limit": -1.0}, "limit: -1.0 is out of range; allowed: >= 0.001", ""),
    "nothing": (
        "token_identity",
        {"candidates": []},
        "candidates: [] has no entries; name some, or leave the key out",
        "",
    ),
}


@pytest.mark.parametrize("case", NOT_MEASURED)
def test_what_no_measure_was_asked_for_is_refused(case: str) -> None:
    figure, options, what, more = NOT_MEASURED[case]
    said = refusal(drawn_of_all(figure, **options))
    assert said.startswith("figures.one.") and what in said and more in said, said


@pytest.mark.parametrize(
    ("figure", "options"),
    [
        ("orders", {"heads": 4}),
        ("together", {"tolerance": 1e-3}),
        ("probe", {"tokens": 32, "attentions": ["gau"]}),
        ("effective_attention", {"tokens": 16}),
        ("residuals", {"centre": "best", "norm": "l1"}),
        ("residuals", {"quantity": "stable_rank"}),
        ("states", {"lines": ["architecture", "training"], "x": "depth"}),
        ("influence", {"architecture": "causal", "task": "sorting"}),
    ],
)
def test_what_a_measure_was_asked_for_is_not(figure: str, options: dict[str, Any]) -> None:
    found = make_plan(drawn_of_all(figure, **options)).figures["one"].options
    assert {name: found[name] for name in options} == options

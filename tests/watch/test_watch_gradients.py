"""Weights of queries and keys are found by many names, thirds of joint matrices are the right ones, and what is not known has a reason."""

import math

import pytest
import torch
from torch import nn

from rankfall.watch.gradients import query_key_weights, squared_norm


def block(**parts):
    """With gradients that count up, so that each entry is known."""
    made = nn.Module()
    for name, shape in parts.items():
        weight = nn.Parameter(torch.zeros(shape))
        weight.grad = torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape)
        *path, last = name.split("__")
        here = made
        for part in path:
            if not hasattr(here, part):
                here.add_module(part, nn.Module())
            here = getattr(here, part)
        here.register_parameter(last, weight)
    return made


def gradient_norm(parts, scale=1.0):
    square, reason = squared_norm(parts, scale)
    return None if square is None else square.sqrt().item(), reason


def norms(module, **options):
    found = query_key_weights(module, **options)
    return [gradient_norm(parts)[0] if parts else None for parts in (found.queries, found.keys)]


def norm(*values):
    return pytest.approx(math.sqrt(sum(value**2 for value in values)))


@pytest.mark.parametrize(
    "names",
    [
        ("attn__q_proj", "attn__k_proj"),
        ("attention__self__query", "attention__self__key"),
        ("wq", "wk"),
        ("to_q", "to_k"),
    ],
    ids=lambda names: names[0],
)
def test_weights_by_their_names(names):
    query, key = (f"{name}__weight" for name in names)
    module = block(**{query: (2, 2), key: (1, 2), "v_proj__weight": (9, 9), "query_norm__weight": (5,)})
    assert norms(module) == [norm(0, 1, 2, 3), norm(0, 1)]


@pytest.mark.parametrize(
    "name", ["self_attn__in_proj_weight", "attn__c_attn__weight", "attn__qkv__weight", "Wqkv__weight"]
)
def test_thirds_of_a_joint_matrix(name):
    assert norms(block(**{name: (6, 2)})) == [norm(0, 1, 2, 3), norm(4, 5, 6, 7)]


def test_thirds_of_columns_where_weights_are_turned():
    conv1d = pytest.importorskip("transformers.pytorch_utils").Conv1D
    module = nn.ModuleDict({"c_attn": conv1d(6, 2)})
    module["c_attn"].weight.grad = torch.arange(12.0).reshape(2, 6)
    assert norms(module) == [norm(0, 1, 6, 7), norm(2, 3, 8, 9)]


def test_attention_to_something_else_is_left_out():
    module = block(
        self_attn__q_proj__weight=(1, 2),
        self_attn__k_proj__weight=(1, 2),
        encoder_attn__q_proj__weight=(3, 3),
        multihead_attn__in_proj_weight=(6, 2),
    )
    assert norms(module) == [norm(0, 1), norm(0, 1)]


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"query_key_value__weight": (6, 2)}, "head by head: say queries= and keys= as functions"),
        ({"qkv_proj__weight": (4, 2)}, "of unknown sizes: say queries="),
        ({"mixer__in_proj__weight": (6, 2)}, "no weights of queries and keys are known by their names"),
    ],
)
def test_what_is_not_known_has_a_reason(parts, said):
    found = query_key_weights(block(**parts))
    assert found.queries == found.keys == () and said in found.reason

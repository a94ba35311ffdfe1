"""Guards that no network is trained or measured with a component that mixes members or samples, keeps state, or is not what its kind is.

Each component of `mylab_bad.py` computes something, most of them without an error; each must be refused in two lines: its file, its
function and what is wrong with it, and the likely fix.
"""

import random
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from rankfall.design import Component
from rankfall.trial.candidate import Refused
from rankfall.trial.kinds import try_component
from rankfall.trial.setting import Surroundings

TWELVE = [
    ("normaliser", "mixes_members", "mixes the members of a stack: member 0 of 3 differs by"),
    ("normaliser", "mixes_samples", "mixes samples: sample 0 of 3 differs by"),
    ("normaliser", "wrong_shape", "returns (3, 3, 2, 6), given scores"),
    ("normaliser", "not_finite", "returns nan in"),
    ("mlp", "function_for_class", "is a function where a class is needed"),
    ("mask", "ClassForFunction", "is a class where a function is needed"),
    ("normaliser", "RawParameter", "has a parameter 'temperature' (1,) without a share for each of 3 members"),
    ("norm", "State", "gives another result ("),
    ("normaliser", "own_randomness", "gives another result ("),
    ("normaliser", "in_place", "edits its input, scores with -inf where masked, in place"),
]
MORE = [
    (
        "normaliser",
        "common_maximum",
        "mixes the members of a stack: where samples of member 0 are 10,000 times as large",
    ),
    (
        "normaliser",
        "maximum_of_samples",
        "mixes samples: where samples of member 0 are 10,000 times as large and infinite",
    ),
    ("norm", "CommonGain", "mixes the members of a stack: where the parameters of member 0 are 10,000 times"),
    ("normaliser", "global_randomness", "draws from torch's global random numbers"),
    ("normaliser", "leaks", "gives a masked token the weight 0.017"),
    ("normaliser", "detached", "lets no gradient through to scores"),
    ("normaliser", "half", "returns float16 in a network of float64"),
    ("normaliser", "raises", "raises RuntimeError: "),
    ("norm", "by_members", "mixes the members of a stack"),
    ("mlp", "Unused", "has a parameter that no gradient reaches: spare"),
    ("norm", "Hidden", "uses a parameter that is not among its `parameters()`"),
    ("normaliser", "Tempered", "has a gradient that is not finite"),
    ("position", "NotAPosition", "has no method `rotate`"),
    ("position", "Borrowed", "mixes the members of a stack: member 1 of 3 differs by"),
    ("attention", "FirstOnly", "mixes samples: sample 1 of 3 differs by"),
    ("block", "LossyBlock", "has no attribute attention"),
    ("block", "AveragingBlock", "mixes samples: sample 0 of 3 differs by"),
    ("head", "NarrowHead", "returns (3, 3, 6, 1), given states (3, 3, 6, 8)"),
    ("embedding", "ModuleParameters", "has a parameter 'map.weight' (8, 5) without a share for each of 3 members"),
    ("sentinels", "Uncounted", "does not say how many tokens it adds"),
    ("mask", "backwards", "leaves token 0 of 6 nothing to see"),
    ("mask", "float_mask", "returns (6, 6) of torch.float32"),
    ("init", "own_init", "draws other numbers"),
    ("optimizer", "Together", "mixes the members of a stack"),
    ("optimizer", "CommonShares", "mixes the members of a stack: where the gradients of member 0 are 10,000 times"),
    ("optimizer", "Remembering", "steps elsewhere when it starts again"),
    ("optimizer", "Jittering", "steps elsewhere when it starts again"),
    ("optimizer", "OwnMomentum", "goes on elsewhere when it is made again"),
    ("normaliser", "sets_precision", "changes torch.get_float32_matmul_precision() from 'highest' to 'high'"),
    ("normaliser", "sets_tf32", "changes torch.get_float32_matmul_precision() from 'highest' to 'high'"),
    ("normaliser", "sets_dtype", "changes torch.get_default_dtype() from torch.float32 to torch.float64"),
    ("normaliser", "sets_deterministic", "changes torch.are_deterministic_algorithms_enabled() from False to True"),
    ("optimizer", "Drifting", "moves a member whose learning rate and gradient are zero"),
    ("schedule", "no_number", "returns inf given epoch 2 of 3"),
    ("task", "out_of_range", "has train inputs from 1 to 5 with size_in = 5"),
    ("task", "unrepeatable", "draws other train inputs"),
]


@pytest.mark.parametrize(("kind", "name", "what"), TWELVE + MORE, ids=lambda text: str(text)[:24])
def test_is_refused_in_two_lines_that_name_it_and_the_fix(kind: str, name: str, what: str) -> None:
    with pytest.raises(Refused) as refused:
        try_component(kind, Component(name=f"mylab_bad:{name}"), Surroundings())
    found, fix = str(refused.value).splitlines()
    assert found.startswith(f"{kind} 'mylab_bad:{name}' (") and f"tests/trial/mylab_bad.py, {name}) {what}" in found
    assert fix.startswith("  fix: ")


def test_a_flag_that_a_component_sets_is_put_back() -> None:
    with pytest.raises(Refused):
        try_component("normaliser", Component(name="mylab_bad:sets_precision"), Surroundings())
    assert torch.get_float32_matmul_precision() == "highest"


def test_an_objective_with_a_maximum_over_members_is_refused() -> None:
    what = r"common_logits\) mixes the members of a stack: loss of member 1 changes where the weights of member 0 are 10,000 times"
    with pytest.raises(Refused, match=what):
        try_component("objective", Component(name="mylab_objective:common_logits"), Surroundings())


def test_an_error_points_at_the_line_of_the_component() -> None:
    lines = (Path(__file__).parent / "mylab_bad.py").read_text().splitlines()
    number = lines.index("    return logits @ torch.ones(7, 7, dtype=logits.dtype)") + 1
    with pytest.raises(
        Refused, match=rf"\(line {number}\), given scores with -inf where masked \(3, 3, 2, 6, 6\)\n  fix: "
    ):
        try_component("normaliser", Component(name="mylab_bad:raises"), Surroundings())


def test_a_slow_one_passes_and_is_not_called_often() -> None:
    """The twelfth. How slow it is, the job says (test_job_trials.py)."""
    candidate = try_component("normaliser", Component(name="mylab_bad:slow"), Surroundings())
    assert candidate.calls <= 9 and candidate.seconds > 0.5


def test_what_only_training_needs_is_not_asked_of_an_untrained_network() -> None:
    try_component("normaliser", Component(name="mylab_bad:detached"), Surroundings(trained=False))
    try_component("normaliser", Component(name="mylab_bad:leaks"), Surroundings(masked=False))


def test_a_trial_leaves_everybodys_random_numbers_alone() -> None:
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()  # type: ignore[index,union-attr]
    with pytest.raises(Refused):
        try_component("normaliser", Component(name="mylab_bad:global_randomness"), Surroundings())
    try_component("position", Component(name="learned"), Surroundings())
    after = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()  # type: ignore[index,union-attr]
    assert before[:2] == after[:2] and torch.equal(before[2], after[2])


def test_a_refusal_costs_little() -> None:
    began = time.monotonic()
    for kind, name, _ in TWELVE:
        with pytest.raises(Refused):
            try_component(kind, Component(name=f"mylab_bad:{name}"), Surroundings())
    assert time.monotonic() - began < 0.2 * len(TWELVE)

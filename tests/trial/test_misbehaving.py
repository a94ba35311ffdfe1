"""Guards that no network is trained or measured with a component that mixes members or samples, keeps state, or is not what its kind is.

Each component of the modules `mylab_*` computes something, most of them without an error; each must be refused in two lines: its file, its
function and what is wrong with it, and the likely fix.
"""

import mylab_bad
import pytest

from rankfall.design import Component
from rankfall.errors import RankfallError
from rankfall.testing import check_component
from rankfall.trial.candidate import Refused, Surroundings
from rankfall.trial.kinds import try_component

BAD = [
    ("normaliser", "bad:mixes_members", "mixes the members of a stack: member 2 of 3 differs by"),
    ("normaliser", "bad:common_maximum", "mixes the members of a stack: member 2 of 3 differs by"),
    ("normaliser", "bad:mixes_samples", "mixes samples: sample 2 of 3 differs by"),
    ("normaliser", "bad:wrong_shape", "returns (3, 3, 2, 6), given scores"),
    ("normaliser", "bad:not_finite", "returns nan in"),
    ("normaliser", "bad:in_place", "edits its input, scores with -inf where masked, in place"),
    ("normaliser", "bad:global_randomness", "draws from torch's global random numbers"),
    ("normaliser", "bad:leaks", "gives a masked token the weight 0.017"),
    ("normaliser", "bad:detached", "lets no gradient through to scores"),
    ("normaliser", "bad:half", "returns float16 in a network of float64"),
    ("normaliser", "bad:raises", "raises RuntimeError: "),
    ("normaliser", "bad:Tempered", "has a gradient that is not finite"),
    ("normaliser", "bad:sets_precision", "changes torch.get_float32_matmul_precision() from 'highest' to 'high'"),
    ("norm", "bad:State", "gives another result ("),
    ("norm", "bad:Hidden", "uses a parameter that is not among its `parameters()`"),
    ("norm", "bad:Unused", "never uses its parameter 'forgotten'"),
    ("norm", "bad:Untrainable", "lets no gradient through to its parameter 'gain'"),
    ("position", "bad:NotAPosition", "has no method `rotate`"),
    ("position", "bad:Borrowed", "mixes the members of a stack: member 2 of 3 differs by"),
    ("embedding", "bad:ModuleParameters", "has a parameter 'map.weight' (8, 5) without a share for each of 3 members"),
    ("mask", "bad:backwards", "leaves token 0 of 6 nothing to see"),
    ("init", "bad:own_init", "draws other numbers"),
    ("attention", "provides:Lacking", "but lacks methods for weights"),
    ("attention", "provides:OtherWeights", "but lacks methods for weights, or they do not give its output"),
    ("objective", "training:edits_targets", "edits `batch.targets` in place"),
    ("objective", "training:mean_of_right", "gives accuracy "),
    ("objective", "training:between_samples", "gives a loss, times the targets asked, of "),
    ("objective", "training:common_logits", "mixes the members of a stack: member 2 of 3 differs by"),
    ("optimizer", "bad:ClippedTogether", "mixes the members of a stack: member 2 of 3 differs by"),
    ("optimizer", "bad:OwnMomentum", "goes on elsewhere when it is made again"),
    ("optimizer", "bad:Drifting", "moves a member whose learning rate and gradient are zero"),
    ("task", "bad:untested", "has no samples in its split test"),
    ("task", "bad:out_of_range", "has train inputs from 1 to 5 with size_in = 5"),
    ("task", "bad:unrepeatable", "draws other train inputs"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "what"), BAD, ids=lambda text: str(text)[:32])
def test_is_refused_in_two_lines_that_name_it_and_the_fix(kind: str, name: str, what: str) -> None:
    with pytest.raises(Refused) as refused:
        try_component(kind, Component(name=f"mylab_{name}"), Surroundings())
    mistake, fix = str(refused.value).splitlines()
    module, function = name.split(":")
    assert mistake.startswith(f"{kind} 'mylab_{name}' (tests/trial/mylab_{module}.py, {function}) ") and what in mistake
    assert fix.startswith("  fix: ")


def test_an_error_in_the_users_own_line_is_to_be_corrected_there() -> None:
    with pytest.raises(Refused, match=r"fix: correct line \d+ of tests/trial/mylab_bad.py: return logits @ torch.ones"):
        try_component("normaliser", Component(name="mylab_bad:raises"), Surroundings())


def test_what_only_training_needs_is_not_asked_of_an_untrained_network() -> None:
    try_component("normaliser", Component(name="mylab_bad:detached"), Surroundings(trained=False))
    try_component("normaliser", Component(name="mylab_bad:leaks"), Surroundings(masked=False))


def test_a_maximum_over_the_stack_that_a_causal_mask_hides_is_refused() -> None:
    check_component("attention", mylab_bad.SharedMaximum, masked=True)
    with pytest.raises(RankfallError, match="mixes the members of a stack"):
        check_component("attention", mylab_bad.SharedMaximum)

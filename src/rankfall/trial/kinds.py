"""List what is tried of each kind of component. A kind is one entry of the table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rankfall.design import Component
from rankfall.trial import data, nets, objectives, optimizers
from rankfall.trial.candidate import Candidate, Drawn
from rankfall.trial.declared import check_declared
from rankfall.trial.flags import unchanged_flags, unused_generators
from rankfall.trial.setting import Surroundings

SIZES = frozenset({"width", "heads", "head_width", "mlp_width", "tokens", "sentinels", "size_in", "size_out"})
MAP = SIZES | {"trained"}
OR_CLASS = "or a class of such a map, made with sizes"


@dataclass(frozen=True)
class Kind:
    wanted: str  # "function", "class", or "either": what is made with sizes may be made by a function too
    contract: str
    attempt: Callable[[Candidate, Surroundings], None]
    reads: frozenset[str] = frozenset()  # of the setting: a trial holds for all settings that agree in these


KINDS: Mapping[str, Kind] = {
    "normaliser": Kind(
        "either",
        f"f(scores (K, B, H, T, T)) to weights of that shape, {OR_CLASS}",
        nets.normaliser,
        MAP | {"masked"},
    ),
    "position": Kind("either", "a subclass of Position, made with sizes", nets.position, MAP),
    "mask": Kind("function", "f(length) to booleans (T, T), or None", nets.mask, frozenset({"tokens", "sentinels"})),
    "residual": Kind(
        "either",
        "f(stream, branch, depth) to states (K, B, T, D), or a class of f(stream, branch), made with sizes",
        nets.residual,
        MAP,
    ),
    "norm": Kind("either", f"f(states (K, B, T, D)) to the same, {OR_CLASS}", nets.norm_or_mlp, MAP),
    "mlp": Kind("either", "a class of a map of states (K, B, T, D), made with sizes", nets.norm_or_mlp, MAP),
    "embedding": Kind(
        "either", "a class of a map of inputs to states (K, B, T, D), made with sizes", nets.embedding, MAP | {"inputs"}
    ),
    "head": Kind("either", "a class of a map of states (K, B, T, D) to answers, made with sizes", nets.head, MAP),
    "sentinels": Kind("either", "a class with `add` and `strip`, made with sizes", nets.sentinels, MAP),
    "init": Kind("function", "f(rng, role, kind, shape, fan_in) to a NumPy array", nets.init),
    "attention": Kind(
        "class",
        "a class with `forward(x, drop)`, made with sizes, position, normaliser, mask and site",
        nets.attention,
        MAP | {"masked"},
    ),
    "block": Kind("class", "a class made with attention, mlp, residual, ...", nets.block, MAP | {"placement", "mlp"}),
    "objective": Kind("function", "f(module, samples, drop) to a Graded", objectives.objective),
    "optimizer": Kind("class", "a class with `slots` and `step`", optimizers.optimizer),
    "schedule": Kind("function", "f(epoch, epochs) to a factor", optimizers.schedule, frozenset({"epochs"})),
    "task": Kind("either", "f(rng) to a Dataset", data.task),
}


def try_component(kind: str, component: Component, setting: Surroundings, drawn: Drawn = None) -> Candidate:
    """Raise `Refused` if the component is not what its kind must be. Return it with the time that its calls took."""
    entry = KINDS[kind]
    candidate = Candidate(kind, component, entry.contract, drawn)
    with unchanged_flags(candidate.refusal):
        candidate.load(entry.wanted)
        with unused_generators(candidate.refusal):
            entry.attempt(candidate, setting)
            check_declared(candidate)
    return candidate

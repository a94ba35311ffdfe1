"""List what is tried of each kind of component. A kind is one entry of the table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rankfall.design import Component
from rankfall.trial import data, nets, objectives, optimizers
from rankfall.trial.candidate import Candidate, Drawn, Refused
from rankfall.trial.declared import check_declared
from rankfall.trial.flags import unchanged_flags, unused_generators
from rankfall.trial.setting import Surroundings

SIZES = frozenset({"width", "heads", "head_width", "mlp_width", "tokens", "sentinels", "size_in", "size_out"})
MAP = SIZES | {"trained"}
OR_CLASS = "or a class of such a map, made with sizes"


@dataclass(frozen=True)
class Kind:
    contract: str
    attempt: Callable[[Candidate, Surroundings], None]
    reads: frozenset[str] = frozenset()  # of the setting: a trial holds for all settings that agree in these


KINDS: Mapping[str, Kind] = {
    "normaliser": Kind(
        f"f(scores (K, B, H, T, T)) to weights of that shape, {OR_CLASS}",
        nets.normaliser,
        MAP | {"masked"},
    ),
    "position": Kind("a subclass of Position, made with sizes", nets.position, MAP),
    "mask": Kind("f(length) to booleans (T, T), or None", nets.mask, frozenset({"tokens", "sentinels"})),
    "residual": Kind(
        "f(stream, branch, depth) to states (K, B, T, D), or a class of f(stream, branch), made with sizes",
        nets.residual,
        MAP,
    ),
    "norm": Kind(f"f(states (K, B, T, D)) to the same, {OR_CLASS}", nets.as_map(nets.on_states), MAP),
    "mlp": Kind("a class of a map of states (K, B, T, D), made with sizes", nets.as_map(nets.on_states), MAP),
    "embedding": Kind(
        "a class of a map of inputs to states (K, B, T, D), made with sizes",
        nets.as_map(nets.as_embedding),
        MAP | {"inputs"},
    ),
    "head": Kind("a class of a map of states (K, B, T, D) to answers, made with sizes", nets.as_map(nets.as_head), MAP),
    "sentinels": Kind("a class with `add` and `strip`, made with sizes", nets.sentinels, MAP),
    "init": Kind("f(rng, role, kind, shape, fan_in) to a NumPy array", nets.init),
    "attention": Kind(
        "a class with `forward(x, drop)`, made with sizes, position, normaliser, mask and site",
        nets.attention,
        MAP | {"masked"},
    ),
    "block": Kind("a class made with attention, mlp, residual, ...", nets.block, MAP | {"placement", "mlp"}),
    "objective": Kind("f(module, samples, drop) to a Graded", objectives.objective),
    "optimizer": Kind("a class with `slots` and `step`", optimizers.optimizer),
    "schedule": Kind("f(epoch, epochs) to a factor", optimizers.schedule, frozenset({"epochs"})),
    "task": Kind("f(rng) to a Dataset", data.task),
}


def try_component(kind: str, component: Component, setting: Surroundings, drawn: Drawn = None) -> Candidate:
    """Raise `Refused` if the component is not what its kind must be. Return it with the time that its calls took."""
    entry = KINDS[kind]
    candidate = Candidate(kind, component, entry.contract, drawn)
    try:
        with unchanged_flags(candidate.refusal):
            candidate.load()
            with unused_generators(candidate.refusal):
                entry.attempt(candidate, setting)
                check_declared(candidate)
    except Refused:
        raise
    except Exception as error:  # what a component returns may be of any type
        what = f"raises {candidate.describe_error(error)}"
        raise candidate.refusal(what, f"it must be {entry.contract}") from error
    return candidate

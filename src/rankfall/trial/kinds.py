"""Try a component by the checks of its kind, and compare the facts that it declares with those that a call shows.

A kind is an entry of the table KINDS.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import isclass

from rankfall.design import Component
from rankfall.trial import data, nets, objectives
from rankfall.trial.candidate import Candidate, Drawn, Refused, Surroundings
from rankfall.trial.flags import unchanged_flags, unused_generators
from rankfall.trial.learn import JUDGED, LEARN

SIZES = frozenset({"width", "heads", "head_width", "mlp_width", "tokens", "sentinels", "size_in", "size_out"})
MAP = SIZES | {"trained"}
OR_CLASS = "or a class of such a map, made with sizes"


@dataclass(frozen=True)
class Kind:
    """The trial of a kind of component."""

    contract: str  # completes "it must be ..." in a refusal
    attempt: Callable[[Candidate, Surroundings], None]
    reads: frozenset[str] = frozenset()  # fields of the setting: a trial holds for all settings that agree in these


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
    "optimizer": Kind("a class with `slots` and `step`", objectives.optimizer),
    "schedule": Kind("f(epoch, epochs) to a factor", objectives.schedule, frozenset({"epochs"})),
    "task": Kind("f(rng) to a Dataset", data.task),
}


def try_component(kind: str, component: Component, setting: Surroundings, drawn: Drawn = None) -> Candidate:
    """Raise `Refused` if a component breaks the contract of its kind. Return the candidate, which holds the time of its calls."""
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
        fault = f"raises {candidate.describe_error(error)}"
        raise candidate.refusal(fault, candidate.remedy_of(error)) from error
    return candidate


def check_declared(candidate: Candidate) -> None:
    """Raise `Refused` if a fact, declared or learned with default options, allows more than a call with these options shows.

    BREAKS and PROVIDES tell measures how they may take a network apart, and keys omit fields in IGNORES: with a wrong fact, numbers would
    be of another network than the one that was trained.
    """
    kind, loaded = candidate.kind, candidate.loaded
    if kind not in LEARN or kind == "task" or (kind in ("normaliser", "residual") and not isclass(loaded)):
        return
    try:
        shown = LEARN[kind](loaded, candidate.component.options)
    except Exception:  # it may run at the network's sizes only
        return
    facts = [candidate.facts.get(fact, ()) for fact in ("BREAKS", "PROVIDES", "IGNORES")]
    breaks, provides, ignores = ((names,) if isinstance(names, str) else tuple(names) for names in facts)
    if lacking := [name for name in shown.get("BREAKS", ()) if name not in breaks]:
        declaration = f"says BREAKS = {breaks!r}" if breaks else "does not say BREAKS"
        fault = f"makes networks of which measures cannot have the whole by {' and '.join(lacking)}, and {declaration}"
        remedy = f"write BREAKS = {(*dict.fromkeys((*lacking, *breaks)),)!r} at the top of its file, so that such measures leave them out"
        raise candidate.refusal(fault, remedy)
    judged = JUDGED.get(kind, set())
    if wrong := [name for name in provides if name in judged and name not in shown["PROVIDES"]]:
        fault = f"says PROVIDES = {provides!r}, but lacks methods for {wrong[0]}, or they do not give its output"
        refused = "measures that use it are then refused before anything is trained"
        raise candidate.refusal(fault, f"mend them, or leave {wrong[0]!r} out: {refused}")
    if read := [name for name in ignores if name not in shown.get("IGNORES", ignores)]:
        fault = f"reads its {read[0]} with these options, and IGNORES has it (declared, or learned from its defaults)"
        raise candidate.refusal(fault, f"write IGNORES without {read[0]!r} at the top of its file")

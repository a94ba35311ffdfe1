"""Refuse impossible combinations with a reason, before anything runs. They follow from the facts of components (`options.py`)."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rankfall import components
from rankfall.components import AUTO
from rankfall.design import UNREAD, Architecture, Component, Described, Task, Training, components_of
from rankfall.filters import as_list
from rankfall.run.config.match import describe_filter, matches, parse_filter
from rankfall.run.config.options import resolve
from rankfall.run.config.problems import problem

TARGETS = ("classes", "values", "hidden")  # hidden: inputs that the objective hides are the targets
PROVIDERS = ("attention", "position", "normaliser")  # parts of a network that measures may use
BLOCKS = "blocks"  # layers as in the block `attention`: maps of one state, built from attention, MLP, norms and residuals only
DIFFERENT = "different sequences"  # the default of SEQUENCES
FITS = {
    "embedding": {"tokens": "token", "vectors": "linear"},
    "head": {"classes": "classifier", "values": "regression", "hidden": "classifier"},
    "objective": {"classes": "classes", "values": "values", "hidden": "masked_tokens"},
}


class Rules:
    """The rules for a plan, which look up the facts of each component once."""

    def __init__(self) -> None:
        self.facts_of = functools.cache(components.facts_of)
        self.task_facts = functools.cache(task_facts)

    def complete(self, architecture: Architecture, task: Task, path: str) -> Architecture:
        """Return the architecture with the values for which `auto` and null stand, and null in fields that nothing reads."""
        a, facts = architecture, self.task_facts(task.task.name, f"tasks.{task.name}")
        change: dict[str, Any] = {
            "embedding": self.check_fit("embedding", a.embedding, facts["INPUTS"], task, path),
            "head": self.check_fit("head", a.head, facts["TARGETS"], task, path),
        }
        if a.sentinels.name != "none" and "COUNT" not in self.facts_of("sentinels", a.sentinels.name):
            fault = f"its file must say COUNT, how many tokens {a.sentinels.name!r} adds"
            raise problem(f"{path}.sentinels", fault + explain_unknown("sentinels", a.sentinels.name))
        unread = [field for kind in UNREAD for field in self.facts_of(kind, getattr(a, kind).name).get("IGNORES", ())]
        if a.head_width is None and "head_width" not in unread:
            if a.width % a.heads:
                divisors = [str(n) for n in range(1, a.width + 1) if a.width % n == 0]
                fault = f"{a.heads} heads do not divide the width {a.width}"
                raise problem(f"{path}.heads", fault, allowed=divisors, hint="or set head_width")
            change["head_width"] = a.width // a.heads
        change["mlp_width"] = a.mlp_width or 4 * a.width
        change["mlp_residual"] = a.mlp_residual or a.residual
        if a.norm.name == "none":
            change["norm_placement"] = "post"
        return replace(a, **(change | dict.fromkeys(unread)))

    def complete_training(self, training: Training, task: Task, path: str) -> Training:
        """Return the training with an objective that supports the task."""
        targets = self.task_facts(task.task.name, f"tasks.{task.name}")["TARGETS"]
        return replace(training, objective=self.check_fit("objective", training.objective, targets, task, path))

    def check_fit(self, kind: str, part: Component, accepted: str, task: Task, path: str) -> Component:
        """Return an embedding, a head or an objective that supports the task, with `auto` resolved."""
        if part.name == AUTO:
            return resolve(kind, Component(name=FITS[kind][accepted]), f"{path}.{kind}")
        accepts = as_list(self.facts_of(kind, part.name).get("ACCEPTS", accepted))
        if accepted not in accepts:
            known = {name: as_list(self.facts_of(kind, name).get("ACCEPTS", [])) for name in components.names(kind)}
            others = [name for name, accepted_targets in known.items() if name == AUTO or accepted in accepted_targets]
            fault = f"{part.name!r} is for {' or '.join(accepts)}, but task {task.name!r} has {accepted}"
            raise problem(f"{path}.{kind}", fault, allowed=others)
        return part

    def refuse(self, cell: Described, path: str) -> None:
        """Raise if one of the cell's components cannot be combined with the others."""
        reasons = [
            *(
                objection(kind, component.name, cell, self.facts_of)
                for kind, component in components.parts_of(cell.task, cell.architecture, cell.training)
            ),
            self.out_of_reach(cell.architecture),
            beyond(cell, lengths(self.facts_of("task", cell.task.task.name), cell.task.task.options)),
        ]
        for reason in filter(None, reasons):
            raise problem(path, reason)

    def out_of_reach(self, architecture: Architecture) -> str | None:
        """Return an error if the position or the normaliser acts at a point that the attention does not offer, or None."""
        attention = architecture.attention.name
        offers = self.facts_of("attention", attention).get("OFFERS")
        for kind, default in (("position", ("queries", "scores")), ("normaliser", ())):
            component = getattr(architecture, kind)
            if offers is None or component is None:
                continue
            for point in self.facts_of(kind, component.name).get("TOUCHES", default):
                if point not in ("states", *offers):
                    fault = f"{kind} {component.name!r} acts on {point}, or does not say TOUCHES"
                    return f"{fault}; attention {attention!r} does not let it reach {point}"
        return None


def objection(kind: str, name: str, cell: Described, facts_of: Callable[[str, str], Mapping[str, Any]]) -> str | None:
    """Return why a component cannot be in such a cell, or why a measure cannot measure it, or None.

    `facts_of` is `components.facts_of` or a cached version of it."""
    facts = facts_of(kind, name)
    for fact, verb in (("REFUSES", "cannot be combined with"), ("REQUIRES", "needs")):
        for accepted, reason in facts.get(fact, ()):
            if matches(cell, parse_filter(accepted, f"{fact} of {kind} {name!r}")) == (fact == "REFUSES"):
                return f"{kind} {name!r} {verb} {describe_filter(accepted)}: {reason}"
    uses = alternatives(facts)
    if not uses:
        return None
    providers = {part: getattr(cell.architecture, part) for part in PROVIDERS if getattr(cell.architecture, part)}
    provided = {
        use for part, component in providers.items() for use in facts_of(part, component.name).get("PROVIDES", ())
    }
    provided |= {BLOCKS}
    lacks = [use for use in uses if not provided & set(use)]
    if lacks:
        attention, *others = (f"{part} {component.name!r}" for part, component in providers.items())
        nor = "".join(f", nor {other}" for other in others) if any(len(use) > 1 for use in lacks) else ""
        fault = f"{kind} {name!r} uses {' and '.join(map(' or '.join, lacks))}, which {attention} does not have{nor}"
        return fault + explain_unknown("attention", cell.architecture.attention.name)
    for part, component in components_of(cell.architecture):
        breaks = set(facts_of(part, component.name).get("BREAKS", ()))
        broken = [use for use in uses if not provided & set(use) - breaks]
        if broken:
            listed, whole = " and ".join(map(" or ".join, broken)), "attention" if part == "position" else "the network"
            return f"{kind} {name!r} uses {listed}, which is an incomplete account of {whole} with {part} {component.name!r}"
    return None


def explain_unknown(kind: str, name: str) -> str:
    """Return, as the end of a message, the error that kept a call of the component from showing its facts; empty if there was none."""
    described = components.describe(kind, name)
    fault = described.unknown if described else ""
    return f", since it fails when it is called with its defaults: {fault}" if fault else ""


def alternatives(facts: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return USES of a measure as groups of alternatives. A network must provide an alternative of each group."""
    return [(use,) if isinstance(use, str) else tuple(use) for use in facts.get("USES", ())]


def lengths(facts: Mapping[str, Any], options: Mapping[str, Any]) -> list[int]:
    """Return the lengths at which a task or a measure runs networks, from the options that LENGTHS names."""
    values = [item for name in facts.get("LENGTHS", ()) for item in as_list(options.get(name))]
    return [item for item in values if type(item) is int]


def check_precision(training: Training, device: str, path: str) -> None:
    """Raise if the precision of a training is not available."""
    if training.precision == "full" or not training.epochs:
        return
    setting = f"precision {training.precision!r}"
    if training.dtype != "float32":
        raise problem(path, f"{setting} is for trainings in float32, not in {training.dtype}")
    if training.precision == "tf32" and device == "cpu":
        fault = f"{setting} is a number format of GPUs, and compute.device is 'cpu'"
        raise problem(path, fault, hint="say `compute: {device: cuda}`")


def beyond(cell: Described, lengths: Sequence[int]) -> str | None:
    """Return why a network cannot run at these lengths; None if it can, or if its task has no single length."""
    trained = cell.task.task.options.get("length")
    longest = max(lengths, default=0)
    if type(trained) is not int or longest <= trained:
        return None
    for kind, component in components.parts_of(cell.task, cell.architecture, cell.training):
        default = "trained" if kind == "position" else "any"
        if components.facts_of(kind, component.name).get("ADMITS", default) == "trained":
            fault = f"{kind} {component.name!r} admits no more than the length that it was trained at"
            return f"length {longest} is asked for, but {fault}, {trained}"
    return None


def task_facts(name: str, path: str) -> dict[str, str]:
    """Return INPUTS, TARGETS and SEQUENCES of a task's component."""
    facts = components.facts_of("task", name)
    for fact, allowed in {"INPUTS": ("tokens", "vectors"), "TARGETS": TARGETS}.items():
        if facts.get(fact) not in allowed:
            fault = f"the file of task {name!r} must say {fact} = {' or '.join(map(repr, allowed))}"
            raise problem(path, fault + explain_unknown("task", name))
    return {"INPUTS": facts["INPUTS"], "TARGETS": facts["TARGETS"], "SEQUENCES": facts.get("SEQUENCES", DIFFERENT)}

"""Impossible combinations, reported with a reason before anything runs. Components declare the facts that decide (`facts.py`)."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rankfall import components
from rankfall.components import AUTO
from rankfall.design import UNREAD, Architecture, Component, Designed, Task, Training, components_of
from rankfall.filters import as_list
from rankfall.run.config.match import describe_filter, matches, parse_filter
from rankfall.run.config.options import resolve
from rankfall.run.config.problems import problem

TARGETS = ("classes", "values", "hidden")  # hidden: the targets are inputs that the objective hides
PROVIDERS = ("attention", "position", "normaliser")  # parts of a network that measures may use
BLOCKS = "blocks"  # layers as in the block `attention`: maps of one state, built from attention, MLP, norms and residuals only
DIFFERENT = "different sequences"  # the default of SEQUENCES
FITS = {
    "embedding": {"tokens": "token", "vectors": "linear"},
    "head": {"classes": "classifier", "values": "regression", "hidden": "classifier"},
    "objective": {"classes": "classes", "values": "values", "hidden": "masked_tokens"},
}


class Rules:
    """The rules for one plan. The facts of each component are looked up once."""

    def __init__(self) -> None:
        self.facts_of = functools.cache(components.facts_of)
        self.task_facts = functools.cache(task_facts)

    def complete(self, architecture: Architecture, task: Task, path: str) -> Architecture:
        """Return the architecture with `auto` and null replaced by what they stand for, and null in fields that nothing reads."""
        a, facts = architecture, self.task_facts(task.task.name, f"tasks.{task.name}")
        change: dict[str, Any] = {
            "embedding": self.check_fit("embedding", a.embedding, facts["INPUTS"], task, path),
            "head": self.check_fit("head", a.head, facts["TARGETS"], task, path),
        }
        if a.sentinels.name != "none" and "COUNT" not in self.facts_of("sentinels", a.sentinels.name):
            what = f"its file must say COUNT, how many tokens {a.sentinels.name!r} adds"
            raise problem(f"{path}.sentinels", what + explain_unknown("sentinels", a.sentinels.name))
        unread = [field for kind in UNREAD for field in self.facts_of(kind, getattr(a, kind).name).get("IGNORES", ())]
        if a.head_width is None and "head_width" not in unread:
            if a.width % a.heads:
                divisors = [str(n) for n in range(1, a.width + 1) if a.width % n == 0]
                what = f"{a.heads} heads do not divide the width {a.width}"
                raise problem(f"{path}.heads", what, allowed=divisors, hint="or set head_width")
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
            others = [name for name, able in known.items() if name == AUTO or accepted in able]
            what = f"{part.name!r} is for {' or '.join(accepts)}, but task {task.name!r} has {accepted}"
            raise problem(f"{path}.{kind}", what, allowed=others)
        return part

    def refuse(self, cell: Designed, path: str) -> None:
        """Raise if one of the cell's components cannot be combined with the others."""
        reasons = [
            *(
                objection(kind, component.name, self.facts_of(kind, component.name), cell, self.facts_of)
                for kind, component in components.parts_of(cell.task, cell.architecture, cell.training)
            ),
            self.out_of_reach(cell.architecture),
            beyond(cell, lengths(self.facts_of("task", cell.task.task.name), cell.task.task.options)),
        ]
        for reason in filter(None, reasons):
            raise problem(path, reason)

    def out_of_reach(self, architecture: Architecture) -> str | None:
        """Return an error if the position or the normaliser acts on something that the attention does not offer, or None."""
        attention = architecture.attention.name
        offers = self.facts_of("attention", attention).get("OFFERS")
        for kind, unsaid in (("position", ("queries", "scores")), ("normaliser", ())):
            component = getattr(architecture, kind)
            if offers is None or component is None:
                continue
            for place in self.facts_of(kind, component.name).get("TOUCHES", unsaid):
                if place not in ("states", *offers):
                    what = f"{kind} {component.name!r} acts on {place}, or does not say TOUCHES"
                    return f"{what}; attention {attention!r} does not let it reach {place}"
        return None


def objection(
    kind: str, name: str, facts: Mapping[str, Any], cell: Designed, facts_of: Callable[[str, str], Mapping[str, Any]]
) -> str | None:
    """Return why a component cannot be in such a cell, or why a measure cannot measure it, or None. `facts_of` is `components.facts_of` or
    a cached version of it."""
    for fact, verb in (("REFUSES", "cannot be combined with"), ("REQUIRES", "needs")):
        for wanted, reason in facts.get(fact, ()):
            if matches(cell, parse_filter(wanted, f"{fact} of {kind} {name!r}")) == (fact == "REFUSES"):
                return f"{kind} {name!r} {verb} {describe_filter(wanted)}: {reason}"
    uses = alternatives(facts)
    if not uses:
        return None
    has = {part: getattr(cell.architecture, part) for part in PROVIDERS}
    given = {what for part, one in has.items() if one for what in facts_of(part, one.name).get("PROVIDES", ())}
    given |= {BLOCKS}
    lacks = [use for use in uses if not given & set(use)]
    if lacks:
        attention, *others = (f"{part} {one.name!r}" for part, one in has.items() if one)
        nor = "".join(f", nor {one}" for one in others) if any(len(use) > 1 for use in lacks) else ""
        what = f"{kind} {name!r} uses {' and '.join(map(' or '.join, lacks))}, which {attention} does not have{nor}"
        return what + explain_unknown("attention", cell.architecture.attention.name)
    for part, one in components_of(cell.architecture):
        breaks = set(facts_of(part, one.name).get("BREAKS", ()))
        broken = [use for use in uses if not given & set(use) - breaks]
        if broken:
            said, whole = " and ".join(map(" or ".join, broken)), "attention" if part == "position" else "the network"
            return f"{kind} {name!r} uses {said}, which is an incomplete account of {whole} with {part} {one.name!r}"
    return None


def explain_unknown(kind: str, name: str) -> str:
    """Return why calling a component did not show its facts, as the end of a message. Empty if it did."""
    found = components.describe(kind, name)
    return f" (calling it with its defaults failed: {found.unknown})" if found and found.unknown else ""


def alternatives(facts: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return what a measure USES as groups of alternatives. A network must provide one of each group."""
    return [(use,) if isinstance(use, str) else tuple(use) for use in facts.get("USES", ())]


def lengths(facts: Mapping[str, Any], options: Mapping[str, Any]) -> list[int]:
    """Return the lengths at which a task or a measure runs networks, from the options that LENGTHS names."""
    given = [item for name in facts.get("LENGTHS", ()) for item in as_list(options.get(name))]
    return [item for item in given if type(item) is int]


def check_precision(training: Training, device: str, path: str) -> None:
    """Raise if the precision of a training is not available."""
    if training.precision == "full" or not training.epochs:
        return
    asked = f"precision {training.precision!r}"
    if training.dtype != "float32":
        raise problem(path, f"{asked} is for trainings in float32, not in {training.dtype}")
    if training.precision == "tf32" and device == "cpu":
        raise problem(
            path,
            f"{asked} is a number format of GPUs, and compute.device is 'cpu'",
            hint="say `compute: {device: cuda}`",
        )


def beyond(cell: Designed, asked: Sequence[int]) -> str | None:
    """Return why a network cannot run at one of these lengths. None if it can, or if its task has no single length."""
    trained = cell.task.task.options.get("length")
    longest = max(asked, default=0)
    if type(trained) is not int or longest <= trained:
        return None
    for kind, component in components.parts_of(cell.task, cell.architecture, cell.training):
        unsaid = "trained" if kind == "position" else "any"
        if components.facts_of(kind, component.name).get("ADMITS", unsaid) == "trained":
            what = f"{kind} {component.name!r} admits no more than the length that it was trained at"
            return f"length {longest} is asked for, but {what}, {trained}"
    return None


def task_facts(name: str, path: str) -> dict[str, str]:
    """Return INPUTS, TARGETS and SEQUENCES of a task's component."""
    facts = components.facts_of("task", name)
    for fact, allowed in {"INPUTS": ("tokens", "vectors"), "TARGETS": TARGETS}.items():
        if facts.get(fact) not in allowed:
            found, values = components.describe("task", name), " or ".join(map(repr, allowed))
            if found and found.unknown:
                what = f"task {name!r} fails when it is called with its defaults: {found.unknown}"
                raise problem(
                    path,
                    f"{what}\n  fix: correct it there, or give its file {fact} = {values} if it needs other options",
                )
            raise problem(path, f"the file of task {name!r} must say {fact} = {values}")
    return {"INPUTS": facts["INPUTS"], "TARGETS": facts["TARGETS"], "SEQUENCES": facts.get("SEQUENCES", DIFFERENT)}

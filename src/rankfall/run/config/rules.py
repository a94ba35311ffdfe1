"""Impossible combinations, reported with a reason before anything runs.

Components declare these facts as literals in their files:

- a task: `INPUTS = "tokens" | "vectors"`, `TARGETS = "classes" | "values" | "hidden"`, and `SEQUENCES = "equal tokens"` if each sequence
  repeats one token. A measure of cells: the values that it supports, one or a list;
- an embedding, a head or an objective: `ACCEPTS`, the supported inputs or targets, one or a list;
- a component that does not read some fields of the architecture: `IGNORES`. Fields that nothing reads are not part of a cell;
- an attention, a position or a normaliser: `PROVIDES`, what it provides for measures. A measure: `USES`, what it needs of that. A nested
  list has alternatives, of which one is enough, and every network provides `blocks`. Any part of a network: `BREAKS`, which of these are
  incomplete with it;
- a position or normaliser: `TOUCHES`, what it acts on. An attention: `OFFERS`, what it lets them act on (a position always acts on states);
- a component of a network: `ADMITS = "any" | "trained"`, the lengths at which it runs. A task or measure: `LENGTHS`, the options that hold
  the lengths at which it runs networks;
- any component of a cell, and any measure of cells: `REFUSES = [({"mask": "causal"}, "reason"), ...]`, it cannot be combined with cells
  that match a filter; `REQUIRES = [({"norm": "none"}, "reason"), ...]`, it can only be combined with cells that match every filter.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rankfall import components
from rankfall.components import AUTO
from rankfall.design import UNREAD, Architecture, Component, Designed, Task, Training, components_of
from rankfall.errors import RankfallError
from rankfall.filters import as_list
from rankfall.run.config.match import describe_filter, matches, parse_filter
from rankfall.run.config.options import description, resolve
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
        self.facts: dict[tuple[str, str], Mapping[str, Any]] = {}
        self.automatic: dict[tuple[str, str], Component] = {}
        self.declared = functools.cache(components.facts_of)

    def complete(self, architecture: Architecture, task: Task, path: str) -> Architecture:
        """Return the architecture with `auto` and null replaced by what they stand for, and null in fields that nothing reads."""
        a = architecture
        facts = self.declared_facts("task", task.task.name, f"tasks.{task.name}")
        change: dict[str, Any] = {
            "embedding": self.check_fit("embedding", a.embedding, facts["INPUTS"], task, path),
            "head": self.check_fit("head", a.head, facts["TARGETS"], task, path),
        }
        unread = self.unread(a, path)
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

    def unread(self, architecture: Architecture, path: str) -> list[str]:
        """Return the fields that nothing in the network reads. The responsible component lists them in IGNORES."""
        found = []
        for kind, fields in UNREAD.items():
            name = getattr(architecture, kind).name
            ignored = self.declared_facts(kind, name, f"{path}.{kind}").get("IGNORES", ())
            wrong = [field for field in ignored if field not in fields]
            if wrong:
                what = f"{kind} {name!r} says that it IGNORES {wrong[0]!r}"
                raise problem(f"{path}.{kind}", what, allowed=fields, given=wrong[0])
            found += ignored
        return found

    def check_fit(self, kind: str, part: Component, accepted: str, task: Task, path: str) -> Component:
        """Return an embedding, a head or an objective that supports the task, with `auto` resolved."""
        if part.name == AUTO:
            if (kind, accepted) not in self.automatic:
                self.automatic[kind, accepted] = resolve(kind, Component(name=FITS[kind][accepted]), f"{path}.{kind}")
            return self.automatic[kind, accepted]
        accepts = self.accepts(kind, part.name, f"{path}.{kind}")
        if accepts and accepted not in accepts:
            names = [name for name in components.names(kind) if name != AUTO]
            others = [name for name in names if accepted in self.accepts(kind, name, path)]
            what = f"{part.name!r} is for {' or '.join(accepts)}, but task {task.name!r} has {accepted}"
            raise problem(f"{path}.{kind}", what, allowed=[AUTO, *others])
        return part

    def accepts(self, kind: str, name: str, path: str) -> list[str]:
        """Return what a component accepts. An empty list if it does not declare ACCEPTS."""
        found = self.declared_facts(kind, name, path).get("ACCEPTS", [])
        return [found] if isinstance(found, str) else list(found)

    def complete_training(self, training: Training, task: Task, path: str) -> Training:
        """Return the training with an objective that supports the task."""
        targets = self.declared_facts("task", task.task.name, f"tasks.{task.name}")["TARGETS"]
        return replace(training, objective=self.check_fit("objective", training.objective, targets, task, path))

    def refuse(self, cell: Designed, path: str) -> None:
        """Raise if one of the cell's components cannot be combined with the others."""
        for kind, component in parts(cell.task, cell.architecture, cell.training):
            what = objection(kind, component.name, self.declared_facts(kind, component.name, path), cell, self.declared)
            if what:
                raise problem(path, what)
        what = self.out_of_reach(cell, path)
        if what:
            raise problem(path, what)
        task = cell.task.task
        what = beyond(cell, lengths(self.declared_facts("task", task.name, path), task.options))
        if what:
            raise problem(path, what)

    def out_of_reach(self, cell: Designed, path: str) -> str | None:
        """Return an error if the position or the normaliser acts on something that the attention does not offer, or None."""
        attention = cell.architecture.attention.name
        offers = self.declared_facts("attention", attention, path).get("OFFERS")
        if offers is None:
            return None
        for kind, unsaid in (("position", ("queries", "scores")), ("normaliser", ())):
            component = getattr(cell.architecture, kind)
            if component is None:
                continue
            touches = self.declared_facts(kind, component.name, path).get("TOUCHES")
            for place in unsaid if touches is None else touches:
                if place not in ("states", *offers):
                    said = "acts on" if touches is not None else "does not say TOUCHES, and may act on"
                    what = f"{kind} {component.name!r} {said} {place}"
                    return f"{what}, which attention {attention!r} does not let it reach"
        return None

    def declared_facts(self, kind: str, name: str, path: str) -> Mapping[str, Any]:
        """Return the facts that a component declares."""
        if (kind, name) not in self.facts:
            found = description(kind, name, path)
            self.facts[kind, name] = found.facts if found else {}
            if kind == "sentinels" and found and "COUNT" not in found.facts:
                why = f": calling it with its defaults failed, {found.unknown}" if found.unknown else ""
                raise problem(path, f"{found.location.file} must say COUNT, how many tokens {name!r} adds{why}")
            if kind == "task":
                self.facts[kind, name] = {**self.facts[kind, name], **task_facts(name, path)}
        return self.facts[kind, name]


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
        found = components.describe("attention", cell.architecture.attention.name)
        return what + (f" (calling it with its defaults failed: {found.unknown})" if found and found.unknown else "")
    for part, one in components_of(cell.architecture):
        breaks = set(facts_of(part, one.name).get("BREAKS", ()))
        broken = [use for use in uses if not given & set(use) - breaks]
        if broken:
            said, whole = " and ".join(map(" or ".join, broken)), "attention" if part == "position" else "the network"
            return f"{kind} {name!r} uses {said}, which is an incomplete account of {whole} with {part} {one.name!r}"
    return None


def alternatives(facts: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return what a measure USES as groups of alternatives. A network must provide one of each group."""
    return [(use,) if isinstance(use, str) else tuple(use) for use in facts.get("USES", ())]


def lengths(facts: Mapping[str, Any], options: Mapping[str, Any]) -> list[int]:
    """Return the lengths at which a task or a measure runs networks, from the options that LENGTHS names."""
    found: list[int] = []
    for name in facts.get("LENGTHS", ()):
        given = options.get(name)
        found += [item for item in as_list(given) if type(item) is int]
    return found


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
    for kind, component in parts(cell.task, cell.architecture, cell.training):
        if (
            components.facts_of(kind, component.name).get("ADMITS", "trained" if kind == "position" else "any")
            == "trained"
        ):
            what = f"{kind} {component.name!r} admits no more than the length that it was trained at"
            return f"length {longest} is asked for, but {what}, {trained}"
    return None


def parts(task: Task, architecture: Architecture, training: Training) -> list[tuple[str, Component]]:
    """Return (kind, component) for every component of a cell. An untrained cell has an objective for evaluation, but no optimiser."""
    found = [("task", task.task), *components_of(architecture), ("objective", training.objective)]
    if training.epochs > 0:
        found += [("optimizer", training.optimizer), ("schedule", training.schedule)]
    return found


def task_facts(name: str, path: str) -> dict[str, str]:
    """Return INPUTS, TARGETS and SEQUENCES of a task's component."""
    found = description("task", name, path)
    facts = dict(found.facts) if found else {}
    wanted = {"INPUTS": ("tokens", "vectors"), "TARGETS": TARGETS}
    wrong = {fact: allowed for fact, allowed in wanted.items() if facts.get(fact) not in allowed}
    if wrong:
        where = found.location.file if found else name
        said = " and ".join(f"{fact} = {' or '.join(map(repr, allowed))}" for fact, allowed in wrong.items())
        why = f": calling it with its defaults shows nothing, {found.unknown}" if found and found.unknown else ""
        raise RankfallError(f"{path}: {where} must say {said}{why}")
    return {"INPUTS": facts["INPUTS"], "TARGETS": facts["TARGETS"], "SEQUENCES": facts.get("SEQUENCES", DIFFERENT)}

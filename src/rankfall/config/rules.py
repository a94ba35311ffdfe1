"""Impossible combinations: what no network can be, with the reason, found before anything runs.

Facts that components declare as literals in their files, and that are read here:

- a task: `INPUTS = "tokens" | "vectors"`, `TARGETS = "classes" | "values"`;
- an embedding or a head: `ACCEPTS`, the inputs or targets that it is made for;
- any component of a cell, and any measure of cells: `REFUSES = [({"mask": "causal"}, "reason"), ...]`, cells that match a filter
  cannot be combined with it; `REQUIRES = [({"norm": "none"}, "reason"), ...]`, only cells that match every filter can.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rankfall import components
from rankfall.components import AUTO
from rankfall.config.match import matches, parse_filter, told
from rankfall.config.options import description, resolve
from rankfall.config.problems import problem
from rankfall.design import Architecture, Component, Designed, Task, Training
from rankfall.design import parts as fields_of
from rankfall.errors import RankfallError

FITS = {"tokens": "token", "vectors": "linear", "classes": "classifier", "values": "regression"}


class Rules:
    """The rules for one plan; what components declare is looked up once each."""

    def __init__(self) -> None:
        self.facts: dict[tuple[str, str], Mapping[str, Any]] = {}
        self.automatic: dict[tuple[str, str], Component] = {}

    def completed(self, architecture: Architecture, task: Task, path: str) -> Architecture:
        """The architecture with nothing left open: `auto` and null replaced by what they stand for, and by null what nothing reads."""
        a = architecture
        facts = self.of("task", task.task.name, f"tasks.{task.name}")
        change: dict[str, Any] = {
            "embedding": self.fitting("embedding", a.embedding, facts["INPUTS"], task, path),
            "head": self.fitting("head", a.head, facts["TARGETS"], task, path),
        }
        if a.head_width is None:
            if a.width % a.heads:
                divisors = [str(n) for n in range(1, a.width + 1) if a.width % n == 0]
                what = f"{a.heads} heads do not divide the width {a.width}"
                raise problem(f"{path}.heads", what, allowed=divisors, hint="or set head_width")
            change["head_width"] = a.width // a.heads
        has_mlp = a.mlp.name != "none"
        change["mlp_width"] = (a.mlp_width or 4 * a.width) if has_mlp else None
        change["mlp_residual"] = (a.mlp_residual or a.residual) if has_mlp else None
        if a.norm.name == "none":
            change["norm_placement"] = "post"
        return replace(a, **change)

    def fitting(self, kind: str, part: Component, accepted: str, task: Task, path: str) -> Component:
        """An embedding or a head that is made for what the task has."""
        if part.name == AUTO:
            if (kind, accepted) not in self.automatic:
                self.automatic[kind, accepted] = resolve(kind, Component(name=FITS[accepted]), f"{path}.{kind}")
            return self.automatic[kind, accepted]
        accepts = self.of(kind, part.name, f"{path}.{kind}").get("ACCEPTS", accepted)
        if accepts != accepted:
            names = [name for name in components.names(kind) if name != AUTO]
            others = [name for name in names if self.of(kind, name, path).get("ACCEPTS") == accepted]
            what = f"{part.name!r} is for {accepts}, but task {task.name!r} has {accepted}"
            raise problem(f"{path}.{kind}", what, allowed=[AUTO, *others])
        return part

    def refuse(self, cell: Designed, path: str) -> None:
        """Raise if one of the cell's components refuses the company of the others."""
        for kind, component in parts(cell.task, cell.architecture, cell.training):
            what = objection(kind, component.name, self.of(kind, component.name, path), cell)
            if what:
                raise problem(path, what)

    def of(self, kind: str, name: str, path: str) -> Mapping[str, Any]:
        """What a component declares."""
        if (kind, name) not in self.facts:
            found = description(kind, name, path)
            self.facts[kind, name] = found.facts if found else {}
            if kind == "task":
                self.facts[kind, name] = {**self.facts[kind, name], **task_facts(name, path)}
        return self.facts[kind, name]


def objection(kind: str, name: str, facts: Mapping[str, Any], cell: Designed) -> str | None:
    """Why a component cannot be in such a cell, or a measure cannot measure it; None if it can."""
    for fact, verb in (("REFUSES", "cannot be combined with"), ("REQUIRES", "needs")):
        for wanted, reason in facts.get(fact, ()):
            if matches(cell, parse_filter(wanted, f"{fact} of {kind} {name!r}")) == (fact == "REFUSES"):
                return f"{kind} {name!r} {verb} {told(wanted)}: {reason}"
    return None


def parts(task: Task, architecture: Architecture, training: Training) -> list[tuple[str, Component]]:
    """(kind, component) of everything that a cell is made with. Untrained, it needs no optimiser."""
    found = [("task", task.task)]
    for field, kind in fields_of(Architecture).items():
        component = getattr(architecture, field)
        found += [] if component is None else [(kind, component)]
    if training.epochs > 0:
        found += [("optimizer", training.optimizer), ("schedule", training.schedule)]
    return found


def task_facts(name: str, path: str) -> dict[str, str]:
    """INPUTS and TARGETS of a task's component."""
    found = description("task", name, path)
    facts = dict(found.facts) if found else {}
    for fact, allowed in (("INPUTS", ("tokens", "vectors")), ("TARGETS", ("classes", "values"))):
        if facts.get(fact) not in allowed:
            where = found.location.file if found else name
            raise RankfallError(f"{path}: {where} must say {fact} = {' or '.join(map(repr, allowed))}")
    return {"INPUTS": facts["INPUTS"], "TARGETS": facts["TARGETS"]}

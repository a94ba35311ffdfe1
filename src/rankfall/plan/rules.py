"""Impossible combinations: what no network can be, with the reason, found before anything runs.

Facts that components declare as literals in their files, and that are read here:

- a task: `INPUTS = "tokens" | "vectors"`, `TARGETS = "classes" | "values"`;
- an embedding or a head: `ACCEPTS`, the inputs or targets that it is made for;
- any component: `REFUSES = [({"mask": "causal"}, "reason"), ...]`: cells that match the filter cannot be combined with it.
"""

from typing import Any

from rankfall import components
from rankfall.components import AUTO
from rankfall.errors import RankfallError
from rankfall.plan.config import Architecture, Task, Training
from rankfall.plan.match import Described, matches, parse_filter, told
from rankfall.plan.options import description, resolve
from rankfall.plan.problems import problem
from rankfall.plan.values import Component

PARTS = ("block", "normaliser", "position", "mask", "residual", "mlp", "norm", "embedding", "head", "sentinels", "init")
FITS = {"tokens": "token", "vectors": "linear", "classes": "classifier", "values": "regression"}


def completed(architecture: Architecture, task: Task, path: str) -> Architecture:
    """The architecture with nothing left open: `auto` and null replaced by what they stand for, and what nothing reads by null."""
    facts = task_facts(task)
    change: dict[str, Any] = {}
    for kind, accepted in (("embedding", facts["INPUTS"]), ("head", facts["TARGETS"])):
        part = getattr(architecture, kind)
        if part.name == AUTO:
            change[kind] = resolve(kind, Component(name=FITS[accepted]), f"{path}.{kind}")
            continue
        found = description(kind, part.name, f"{path}.{kind}")
        accepts = found.facts.get("ACCEPTS", accepted) if found else accepted
        if accepts != accepted:
            fitting = [name for name in components.names(kind) if name == AUTO or _accepts(kind, name) == accepted]
            what = f"{part.name!r} is for {accepts}, but task {task.name!r} has {accepted}"
            raise problem(f"{path}.{kind}", what, allowed=fitting)
    if architecture.head_width is None:
        if architecture.width % architecture.heads:
            fitting = [str(n) for n in range(1, architecture.width + 1) if architecture.width % n == 0]
            what = f"{architecture.heads} heads do not divide the width {architecture.width}"
            raise problem(f"{path}.heads", what, allowed=fitting, hint="or set head_width")
        change["head_width"] = architecture.width // architecture.heads
    if architecture.mlp.name == "none":
        change |= {"mlp_width": None, "mlp_residual": None}
    else:
        change["mlp_width"] = architecture.mlp_width or 4 * architecture.width
        change["mlp_residual"] = architecture.mlp_residual or architecture.residual
    if architecture.norm.name == "none":
        change["norm_placement"] = "post"
    return architecture.model_copy(update=change)


def refuse(cell: Described, path: str) -> None:
    """Raise if one of the cell's components refuses the company of the others."""
    for kind, component in parts(cell.task, cell.architecture, cell.training):
        found = description(kind, component.name, path)
        for wanted, reason in found.facts.get("REFUSES", ()) if found else ():
            where = f"REFUSES in {found.location.file}" if found else ""
            if matches(cell, parse_filter(wanted, where)):
                raise problem(path, f"{kind} {component.name!r} cannot be combined with {told(wanted)}: {reason}")


def parts(task: Task, architecture: Architecture, training: Training) -> list[tuple[str, Component]]:
    """(kind, component) of everything that a cell is made with. Untrained, it needs no optimiser."""
    found = [("task", task.task), *((kind, getattr(architecture, kind)) for kind in PARTS)]
    if architecture.mlp_residual is not None:
        found.append(("residual", architecture.mlp_residual))
    if training.epochs > 0:
        found += [("optimizer", training.optimizer), ("schedule", training.schedule)]
    return found


def task_facts(task: Task) -> dict[str, str]:
    """INPUTS and TARGETS of a task."""
    path = f"tasks.{task.name}"
    found = description("task", task.task.name, path)
    facts = dict(found.facts) if found else {}
    for name, allowed in (("INPUTS", ("tokens", "vectors")), ("TARGETS", ("classes", "values"))):
        if facts.get(name) not in allowed:
            where = found.location.file if found else task.task.name
            raise RankfallError(f"{path}: {where} must say {name} = {' or '.join(map(repr, allowed))}")
    return {"INPUTS": facts["INPUTS"], "TARGETS": facts["TARGETS"]}


def _accepts(kind: str, name: str) -> str | None:
    found = components.describe(kind, name)
    return found.facts.get("ACCEPTS") if found else None

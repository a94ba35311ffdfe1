"""For tests of models and components: `assert_keeps_rank(model, inputs, at_least=...)`, `check_component("attention", Mine)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def check_component(kind: str, component: Any, options: Mapping[str, Any] | None = None, **network: Any) -> None:
    """Raise an error in two lines, what was found and the likely fix, if a component is not what its kind must be.

    It is called as networks call it, on small random numbers: results have the right shape and are finite, gradients come through and are
    finite, a second call gives the same, members of a stack and samples of a batch are independent, nothing is drawn from global random
    generators, and precision flags stay as they are. A run does the same before it trains. A measure needs networks, so a job tries it.

    `kind`: a key of an architecture, task or training, such as "normaliser"; `component`: a class or function in an importable module, or
    its name as a configuration has it; `options`: what a configuration would give it; `network`: sizes that differ from the usual,
    such as `width=48, heads=6, tokens=33`.
    """
    from rankfall import components
    from rankfall.design import Component
    from rankfall.errors import RankfallError, suggest
    from rankfall.trial.kinds import KINDS, try_component
    from rankfall.trial.setting import Surroundings

    if kind not in KINDS:
        raise RankfallError(
            f"{kind!r} is no kind of component that can be checked{suggest(kind, KINDS)}\n  kinds: {', '.join(KINDS)}"
        )
    unknown = sorted(network.keys() - vars(Surroundings()).keys())
    if unknown:
        raise RankfallError(f"{unknown[0]!r} is no size of a network\n  sizes: {', '.join(vars(Surroundings()))}")
    name = component if isinstance(component, str) else f"{component.__module__}:{component.__qualname__}"
    if name.startswith("__main__:"):
        raise RankfallError(
            f"{name} is in no module that can be imported\n  fix: move it to a file of its own and import it"
        )
    accepts = components.facts_of(kind, name).get("ACCEPTS", "vectors")
    if kind == "embedding":
        network = {"inputs": accepts if isinstance(accepts, str) else accepts[0]} | network
    try_component(kind, Component(name=name, options=dict(options or {})), Surroundings(**network))


def assert_keeps_rank(model: Any, inputs: Any, *, at_least: float = 0.1, blocks: Any = None) -> None:
    """An AssertionError, with the table of `rankfall check` in its message, if the residual of a last layer is below `at_least`.

    It fails, too, where only a part of the model is measured, or where samples touch each other: then no residual says that all is well.
    `inputs`: a tensor, a tuple of arguments, or a dict of keyword arguments; `blocks`: the layers, where they have to be named.
    """
    from rankfall.check.report import check
    from rankfall.check.table import text
    from rankfall.errors import RankfallError

    if not isinstance(at_least, int | float) or not 0 <= at_least <= 1:
        raise RankfallError(f"at_least is {at_least!r}: it must be a number from 0 to 1")
    reports = check(model, inputs, blocks=blocks)
    low = [one for one in reports if (last := one.layers[-1].residual) is None or last < at_least]
    findings = list(dict.fromkeys(finding for one in reports for finding in one.findings))
    if findings:
        raise AssertionError("; ".join(findings) + "\n\n" + text(reports, type(model).__name__))
    if low:
        shown = text(low, type(model).__name__)
        raise AssertionError(f"the residual of the last layer is below {at_least:g}\n\n{shown}")

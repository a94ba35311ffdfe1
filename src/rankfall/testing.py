"""Assertions for tests of models and components: `assert_keeps_rank(model, inputs, at_least=...)`, `check_component("attention", Mine)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def check_component(kind: str, component: Any, options: Mapping[str, Any] | None = None, **network: Any) -> None:
    """Raise an error of two lines, the problem and the likely fix, if a component does not meet the requirements of its kind.

    The component is called as networks call it, on small random numbers. Results must have the right shape and be finite, gradients must
    reach the inputs and be finite, a second call must give the same result, members of a stack and samples of a batch must be independent,
    nothing may be drawn from global random generators, and precision flags must stay unchanged. A run makes the same checks before it
    trains. Measures need networks, so they are checked in jobs instead.

    `kind`: a key of an architecture, task or training, such as "normaliser"; `component`: a class or function in an importable module, or
    its name as in a configuration; `options`: its options; `network`: sizes other than the defaults, such as
    `width=48, heads=6, tokens=33`.
    """
    from rankfall import components
    from rankfall.design import Component
    from rankfall.errors import RankfallError, suggest
    from rankfall.trial.kinds import KINDS, try_component
    from rankfall.trial.setting import Surroundings

    if kind not in KINDS:
        raise RankfallError(
            f"{kind!r} is not a kind of component that can be checked{suggest(kind, KINDS)}\n  kinds: {', '.join(KINDS)}"
        )
    unknown = sorted(network.keys() - vars(Surroundings()).keys())
    if unknown:
        raise RankfallError(f"{unknown[0]!r} is not a size of a network\n  sizes: {', '.join(vars(Surroundings()))}")
    name = component if isinstance(component, str) else f"{component.__module__}:{component.__qualname__}"
    if name.startswith("__main__:"):
        raise RankfallError(f"{name} cannot be imported\n  fix: move it to its own file and import it")
    accepts = components.facts_of(kind, name).get("ACCEPTS", "vectors")
    if kind == "embedding":
        network = {"inputs": accepts if isinstance(accepts, str) else accepts[0]} | network
    try_component(kind, Component(name=name, options=dict(options or {})), Surroundings(**network))


def assert_keeps_rank(model: Any, inputs: Any, *, at_least: float = 0.1, blocks: Any = None) -> None:
    """Raise AssertionError, with the table of `rankfall check` in its message, if the residual of a last layer is below `at_least`.

    It also fails if only a part of the model can be measured or if samples influence each other, because residuals prove nothing then.
    `inputs`: a tensor, a tuple of arguments, or a dict of keyword arguments; `blocks`: the layers, if they have to be named.
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

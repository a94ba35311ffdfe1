"""Assertions for tests of models and components: one for each check of `rankfall check`, and `check_component("attention", Mine)`."""

from collections.abc import Callable, Mapping
from typing import Any


def check_component(kind: str, component: Any, options: Mapping[str, Any] | None = None, **network: Any) -> None:
    """Raise an error of two lines, the problem and the likely fix, if a component does not meet the requirements of its kind.

    The component is called as networks call it, on small random numbers. Results must have the right shape and be finite, gradients must
    reach the inputs and all parameters and be finite, a second call must give the same result, members of a stack and samples of a batch
    must be independent, nothing may be drawn from global random generators, and precision flags must stay unchanged. A run makes the same
    checks before it trains. A kind that masks act on is tried with a mask and without one, unless `network` says `masked`. Measures need
    networks, so they are checked in jobs instead.

    `kind`: a key of an architecture, task or training, such as "normaliser"; `component`: a class or function in an importable module, or
    its name as in a configuration; `options`: its options; `network`: sizes other than the defaults, such as
    `width=48, heads=6, tokens=33`.
    """
    from rankfall import components
    from rankfall.design import Component
    from rankfall.errors import RankfallError, suggest
    from rankfall.trial.candidate import Surroundings
    from rankfall.trial.kinds import KINDS, try_component

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
    asked = Component(name=name, options=dict(options or {}))
    # Under a causal mask the largest weight of any member is the 1 of its first token, so that a maximum over the stack would pass.
    choices = (
        (True, False) if "masked" in KINDS[kind].reads and "masked" not in network else (network.get("masked", True),)
    )
    for masked in choices:
        try_component(kind, asked, Surroundings(**network | {"masked": masked}))


def _assertion(name: str) -> Callable[..., None]:
    """Return the assertion of one check of `rankfall check`."""

    def assertion(
        model: Any, inputs: Any, *, blocks: Any = None, loss: Any = None, build: Any = None, warn: bool = False
    ) -> None:
        from rankfall.check.named import FAIL, WARN
        from rankfall.check.report import check
        from rankfall.check.table import line_of

        reports = check(model, inputs, blocks=blocks, changes=False, loss=loss, build=build, only=(name,))
        failed = [result for report in reports for result in report.results if result.verdict in (FAIL, *[WARN] * warn)]
        if failed:
            raise AssertionError("\n".join(map(line_of, failed)))

    assertion.__doc__ = f"Raise AssertionError if the check `{name}` fails, or with `warn` if it warns (`rankfall check --explain {name}`)."
    return assertion


assert_numbers_hold = _assertion("numbers-hold")
assert_samples_independent = _assertion("samples-independent")
assert_no_future_leak = _assertion("no-future-leak")
assert_mask_works = _assertion("mask-works")
assert_stream_whole = _assertion("stream-whole")
assert_activations_sane = _assertion("activations-sane")
assert_attention_alive = _assertion("attention-alive")
assert_rank_kept = _assertion("rank-kept")
assert_positions_differ = _assertion("positions-differ")
assert_gradients_flow = _assertion("gradients-flow")
assert_initial_loss = _assertion("initial-loss")
assert_width_transfers = _assertion("width-transfers")


def assert_keeps_rank(model: Any, inputs: Any, *, at_least: float = 0.1, blocks: Any = None) -> None:
    """Raise AssertionError, with the table of `rankfall check` in its message, if the residual of a last layer is below `at_least`.

    It also fails if only a part of the model can be measured or if samples influence each other, because residuals prove nothing then.
    `inputs`: a tensor, a tuple of arguments, or a dict of keyword arguments; `blocks`: the layers, if they have to be named.
    """
    from rankfall.check.named import FAIL
    from rankfall.check.report import check
    from rankfall.check.table import report_text
    from rankfall.errors import RankfallError

    if not isinstance(at_least, int | float) or not 0 <= at_least <= 1:
        raise RankfallError(f"at_least is {at_least!r}: it must be a number from 0 to 1")
    name = type(model).__name__
    reports = check(model, inputs, blocks=blocks, only=("numbers-hold", "samples-independent", "stream-whole"))
    if any(result.verdict == FAIL for report in reports for result in report.results):
        raise AssertionError(f"the residuals of {name} prove nothing\n\n{report_text(reports, name)}")
    low = [report for report in reports if (last := report.layers[-1].residual) is None or last < at_least]
    if low:
        raise AssertionError(f"the residual of the last layer is below {at_least:g}\n\n{report_text(low, name)}")

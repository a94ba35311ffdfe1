"""Guards that the time of steps is that of steps alone."""

from typing import Any

import pytest

from rankfall.train import clock


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A time that passes only where a test says so."""
    time = [0.0]
    monkeypatch.setattr(clock.time, "monotonic", lambda: time[0])

    def wait(seconds: float) -> None:
        time[0] += seconds

    return wait


def test_what_is_done_between_steps_and_epochs_is_left_out(now: Any) -> None:
    found = clock.StepClock("cpu")
    assert found.step_seconds is None
    for seconds in (50.0, 2.0, 4.0):  # of ten steps; the first prepare something
        found.begin()
        now(seconds)
        found.leave_out(lambda: now(1000.0))  # a checkpoint
        found.end(10)
        now(300.0)  # an evaluation
    assert found.step_seconds == pytest.approx(0.4)


@pytest.mark.parametrize(("epochs", "steps", "found"), [(4, 4, None), (1, 19, None), (4, 5, 0.2), (1, 20, 0.05)])
def test_a_handful_of_steps_says_nothing(now: Any, epochs: int, steps: int, found: float | None) -> None:
    """Three networks of twelve steps each were ranked by what else the machine had done meanwhile."""
    clocked = clock.StepClock("cpu")
    for _ in range(epochs):
        clocked.begin()
        now(1.0)
        clocked.end(steps)
    assert clocked.step_seconds == (None if found is None else pytest.approx(found))

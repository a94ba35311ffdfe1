"""Fixtures: a finished run, which tests of the workflow copy or read."""

import pytest
from checkout import Checkout


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Finish a first run, which no test changes."""
    made = Checkout.make(tmp_path_factory.mktemp("base") / "checkout")
    first = made.run()
    assert first.trained == 4, first.output  # two architectures x two seeds
    assert set(first.jobs) == {"data", "train", "measure", "table", "figure"}
    assert len(made.kept()) == 4
    return made

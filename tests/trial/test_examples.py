"""Guards that the examples of the documentation pass the trial of their kind."""

from pathlib import Path
from typing import Any

import component_pages
import pytest

from rankfall.design import Component
from rankfall.trial.candidate import Surroundings
from rankfall.trial.describe import LEARNED
from rankfall.trial.kinds import try_component

EXAMPLES = [
    pytest.param(page, kind, written, id=f"{page}-{kind}", marks=pytest.mark.long if kind in LEARNED else ())
    for page in component_pages.NAMES
    for kind, written in component_pages.components(page)
    if page != "index"  # which names the attention of another page
]


@pytest.mark.parametrize(("page", "kind", "written"), EXAMPLES)
def test_the_examples_of_the_pages_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, kind: str, written: Any
) -> None:
    component_pages.write(tmp_path, component_pages.files(page))
    monkeypatch.syspath_prepend(tmp_path)
    try_component(kind, Component.parse(written), Surroundings(inputs="tokens"))

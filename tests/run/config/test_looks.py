"""Labels and colours of a configuration's own: what they name exists, can be shown, and redraws without training."""

import re
from typing import Any

import pytest
from plans import VALID, changed, refusal

from rankfall.run.plan import make_plan
from rankfall.run.snakemake.jobs import PlanJobs

OWN: dict[str, Any] = {
    **VALID,
    "figures": {"paths": {}},
    "labels": {"san": "attention alone", "softmax": "soft-max", "short": "two epochs"},
    "colours": {"san": "#123456", "full": "teal"},
}


def test_an_edit_of_a_label_or_colour_draws_anew_and_trains_nothing() -> None:
    for path, value in (("labels/san", "only attention"), ("colours/full", "#654321")):
        before, after = make_plan(OWN), make_plan(changed(path, value, OWN))
        old, new = PlanJobs(before), PlanJobs(after)
        assert [cell.key for cell in before.cells] == [cell.key for cell in after.cells]
        assert old.job("table", "paths").digest == new.job("table", "paths").digest
        assert old.job("figure", "paths").digest != new.job("figure", "paths").digest
        assert old.job("page").digest != new.job("page").digest
    assert make_plan(OWN).colours == {"san": "#123456", "full": "#008080"}


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("labels", {"sam": "x"}, "labels.sam: 'sam' is not a task, .* or model of this configuration; did you mean 'san'?"),
        ("labels", {"san": r"$\ell_2$"}, "cannot be shown; allowed: one line of 1 to 60 letters without "),
        ("labels", {"san": "full"}, "labels.san: 'full' is also the label of 'full'"),
        ("colours", {"san": "teel"}, "colours.san: 'teel' is not a colour; .*did you mean 'teal'?"),
    ],
)  # fmt: skip
def test_what_does_not_exist_or_cannot_be_shown_is_refused(path: str, value: Any, said: str) -> None:
    message = refusal(changed(path, value))
    assert re.search(said.replace("?", r"\?") if "\\n" not in said else said, message), message

"""Check the verdict on networks that were asked for places: rows of answers by hand, and each reason in a case of its own."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rankfall.position.agreement import AGAINST, AGREE, OPEN, SHORT, Answers, answers, compare_with_theory
from rankfall.position.theory import Verdict

N = 8
GUESSED = math.log(N)


def asked_of(
    accuracy: float, rows: int, theory: int | None, *, loss: float = 0.5, ceiling: float = 1.0, length: int = N,
    asked: int = N, untrained: int = N, dead: float = 0.0,
) -> tuple[str, str]:  # fmt: skip
    given, verdict = Answers(length, asked, accuracy, loss, rows, ceiling), Verdict(theory, "", "a part says nothing")
    return compare_with_theory(given, verdict, untrained, N, 0.875, dead, "rests on X")


@pytest.mark.parametrize(
    ("case", "agreement", "reason"),
    [
        ({"accuracy": 0.5, "rows": 8, "theory": 2}, AGAINST, "but 2 distinct rows allow no more than 0.25; rests on X"),
        ({"accuracy": 0.75, "rows": 8, "theory": None, "untrained": 4}, AGAINST, "rows allow no more than 0.50"),
        ({"accuracy": 0.5, "rows": 4, "theory": None, "untrained": 4}, OPEN, "a part says nothing"),
        ({"accuracy": 0.875, "rows": 8, "theory": 8}, AGREE, ""),
        ({"accuracy": 0.125, "rows": 1, "theory": 1, "length": 9}, AGREE, ""),
        ({"accuracy": 0.5, "rows": 8, "theory": 9, "length": 9, "untrained": 9}, SHORT, "longer than any trained on (8)"),
        ({"accuracy": 0.5, "rows": 8, "theory": 8, "untrained": 7}, SHORT, "only 7 rows are distinct where theory allows 8"),
        ({"accuracy": 0.5, "rows": 8, "theory": 8, "dead": 1.0}, SHORT, "weights of a layer became zero, and with them their gradient"),
        ({"accuracy": 0.5, "rows": 7, "theory": 8}, SHORT, "training made rows equal that differ at random weights"),
        ({"accuracy": 0.5, "rows": 4, "theory": 4, "ceiling": 0.5}, AGREE, ""),
        ({"accuracy": 0.4995, "rows": 4, "theory": 4, "ceiling": 0.5}, SHORT, "steps or learning rate did not suffice"),
        ({"accuracy": 0.5, "rows": 8, "theory": 8, "ceiling": 0.5}, SHORT, "steps or learning rate did not suffice"),
        ({"accuracy": 0.5, "rows": 8, "theory": 8, "loss": 0.91 * GUESSED}, SHORT, "training never left the loss of a guess, 2.08"),
        ({"accuracy": 0.5, "rows": 8, "theory": 8, "loss": 0.89 * GUESSED}, SHORT, "steps or learning rate did not suffice"),
    ],
)  # fmt: skip
def test_each_difference_from_theory_has_its_reason(case: dict[str, Any], agreement: str, reason: str) -> None:
    found, why = asked_of(**case)
    assert found == agreement
    assert why.endswith(reason) and bool(why) == bool(reason)
    if found == SHORT:
        reached = (
            f"{case['accuracy']:.2f} of the places are right, {case['rows']} of {case.get('length', N)} rows distinct"
        )
        assert why.startswith(f"{reached}, loss {case.get('loss', 0.5):.2f}; ")


def test_answers_by_hand() -> None:
    """Scores are twice the states. The second network has one state at the places 0, 1 and 3, and the last place is not asked for."""
    targets, right = torch.tensor([[[0, 1, 2, -1]]]), math.log(math.exp(2) + 3) - 2
    for symbols, share, rows, loss in (([0, 1, 2, 3], 1, 4, right), ([0, 0, 2, 0], 2 / 3, 2, right + 2 / 3)):
        states = torch.eye(4, dtype=torch.float64)[torch.tensor(symbols)][None, None]
        network: Any = SimpleNamespace(features=lambda _, states=states: states, head=lambda x: 2 * x)
        found = answers(network, torch.zeros(1, 1, 4, dtype=torch.int64), targets)
        assert (found.length, found.asked, found.rows) == (4, 3, rows)
        assert (found.accuracy, found.ceiling, found.loss) == pytest.approx((share, share, loss))

"""Guards what components declare: a fact of the wrong form, or a name in it that is none, is refused and not dropped."""

from pathlib import Path

import pytest
from plans import changed, refusal

from rankfall.run.plan import make_plan

COMPONENT = "def own(scores, *, power: float = 2, sign: int = 0, words: list[int] = []): ...\n"
FACTS = {
    "LIMITS = {'power': 1}": "factlab0.py: LIMITS.power: 1 is an integer, not a list",
    "REFUSES = {'mask': 'causal'}": "REFUSES: {'mask': 'causal'} is a mapping, not a list",
    "DATA = 'facts.csv'": "DATA: 'facts.csv' is text, not a list",
    "PARTS = {'words': 'mesk'}": "PARTS.words: 'mesk' is not possible; allowed: task, block, ",
    "REFUSES = [({'maks': 'causal'}, 'no')]": "REFUSES of normaliser 'factlab0:own'.maks: nothing reads this key",
}


def declared(folder: Path, number: int, text: str) -> str:
    (folder / f"factlab{number}.py").write_text(text)
    return f"factlab{number}:own"


@pytest.mark.parametrize("fact", FACTS)
def test_fact_of_the_wrong_form(fact: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    name = declared(tmp_path, 0, f"{fact}\n{COMPONENT}")
    assert FACTS[fact] in refusal(changed("architectures/san/normaliser", name))


BLOCK = "class Own:\n    def __init__(self, *, attention, mlp, residual, mlp_residual, norm1, norm2, placement, site, gain): ...\n"


def test_what_the_network_hands_to_a_block_is_no_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own option without an annotation is named, and nothing is said to be allowed."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "factlab4.py").write_text(BLOCK)
    message = refusal(changed("architectures/san/block", "factlab4:Own"))
    assert message.endswith("block.gain: block 'factlab4:Own' needs this option")
    message = refusal(changed("architectures/san/block", {"name": "factlab4:Own", "gain": 1, "site": "x"}))
    assert "block.site: nothing reads this key; allowed: gain" in message
    make_plan(changed("architectures/san/block", {"name": "factlab4:Own", "gain": 1}))

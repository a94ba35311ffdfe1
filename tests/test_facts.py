"""Guards what components declare: a fact of the wrong form, or a name in it that is none, is refused and not dropped."""

from pathlib import Path

import pytest
from plans import changed, refusal

from rankfall.run.plan import make_plan

COMPONENT = "def own(scores, *, power: float = 2, sign: int = 0, words: list[int] = []): ...\n"
FACTS = {
    "LIMITS = {'power': 1}": "LIMITS must be a mapping of options to (lowest, highest), None for no bound, not {'power': 1}",
    "LIMITS = {'power': ('1', None)}": "None for no bound, not {'power': ('1', None)}",
    "LIMITS = {'power': (2, 1)}": "LIMITS must be a mapping of options to (lowest, highest), None for no bound, not {'power': (2, 1)}",
    "LIMITS = {'pover': (1, 2)}": "LIMITS names 'pover', which is not an option of the component",
    "FEWEST = 6\nLIMITS = {'power': (FEWEST, None)}": "LIMITS is computed, and a plan runs nothing: write literals",
    "REFUSES = {'mask': 'causal'}": "REFUSES must be a list of (filter of cells, reason), not",
    "REQUIRES = [('mask', 'causal')]": "REQUIRES must be a list of (filter of cells, reason), not",
    "DATA = 'facts.csv'": "DATA must be a list of files, not 'facts.csv'",
    "READS = ['topics']": "READS must be a mapping of words to modules, not ['topics']",
    "FILES = ['words']": "FILES must be a mapping of options to lists of words that stand for no file, not ['words']",
    "PARTS = {'words': 'mesk'}": "PARTS must be a mapping of options to kinds of components (task, block, ",
    "PARTS = {'wrods': 'mask'}": "PARTS names 'wrods', which is not an option of the component",
    "BUILDS = {'mesk': ['causal']}": "BUILDS must be a mapping of kinds of components (attention, block, ",
    "BUILDS = {'mask': 'causal'}": "BUILDS must be a mapping of kinds of components (attention, block, ",
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


def test_integer_is_a_count_unless_limits_say_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    name = declared(tmp_path, 1, COMPONENT.replace("power: float", "power: 'Point'"))
    for option, value in {"sign": -1, "words": [1, -1]}.items():
        message = refusal(changed("architectures/san/normaliser", {"name": name, option: value}))
        hint = f"if others make sense, say LIMITS = {{{option!r}: (None, None)}} in {tmp_path / 'factlab1.py'}"
        assert message.endswith(f"-1 is out of range; allowed: >= 0; {hint}")
    make_plan(changed("architectures/san/normaliser", {"name": name, "power": -1}))
    name = declared(tmp_path, 2, f"LIMITS = {{'sign': (-1, 1)}}\n{COMPONENT}")
    make_plan(changed("architectures/san/normaliser", {"name": name, "sign": -1}))


READERS = {
    "": "its component does not say which TABLES it reads; allowed: ",
    "TABLES = []\n": "TABLES must be a list of tables, not []",
    "TABLES = ['path']\n": "its component says TABLES = ['path']; allowed: ",
}


@pytest.mark.parametrize("kind", ["measure", "figure"])
@pytest.mark.parametrize("tables", READERS)
def test_tables_that_are_read_must_be_tables(
    kind: str, tables: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    about = 'TABLE = "orders"\nNEEDS = "tables"\n' if kind == "measure" else ""
    name = declared(tmp_path, 3, f"{about}{tables}def own(read): ...\n")
    message = refusal(changed(f"{kind}s", {"own": {kind: name}}))
    assert message.startswith(f"{kind}s.own: ") and READERS[tables] in message


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

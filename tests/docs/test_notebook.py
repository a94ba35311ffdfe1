"""Guards the notebook: it runs from top to bottom, and what it prints is what is stored in it."""

import copy
import re
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "docs" / "notebook.ipynb"


@pytest.mark.slow
def test_the_notebook_runs_and_says_what_is_stored(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    stored = nbformat.read(PATH, 4)
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
    """Without the uncertainties, and what only rounding decides, which differ between processors."""
    text = re.sub(r"(?m)^( +\d+ +)-1[34]\.\d+$", r"\1nearly rounding", text)  # of float64, which resolves 1e-15
    return re.sub(r"\+- \S+", "", text).replace("-0.000", "0.000")

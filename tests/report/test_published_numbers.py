"""Guards the files of published numbers: each is part of its quantity, and what is wrong in one of a user is said in a line."""

from collections.abc import Iterator
from pathlib import Path

import component_pages
import pytest
from own_quantity import forget_own
from plans import VALID, changed

from rankfall import components
from rankfall.errors import RankfallError
from rankfall.report.published_numbers import published_numbers
from rankfall.run.plan import make_plan

PACKAGE = Path(components.__file__).parent
LINES = [
    "# read in the paper",
    "source entropy: Nobody & Somebody 2020; On the entropy of attention; https://example.org/entropy",
    "setting small: training=short;depth=2",
    "name,source,place,what,kind,published,sense,tolerance,column,where,less,over,least,within,setting,by",
    "entropy at the end,entropy,table 1,entropy of the last layer,measured,0.5,equal,0.1,entropy,layer=2,,,,,small,architecture",
]
MEASURE = """
TABLE = "mylab.entropy"


def entropy(context):
    return [{"layer": 2, "entropy": 0.55}]
"""
COLUMNS = """
from rankfall.report.schema import Column, Table


def columns():
    columns = Column("layer", "int", "layer"), Column("entropy", "float", "nats")
    return Table("mylab.entropy", "each cell and layer", columns, key=("layer",))
"""
PUBLISHED = """
from rankfall import read_published

DATA = ["published.csv"]
PUBLISHED = read_published(__file__)
"""


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The folder of a user's quantity with a published number."""
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "mylab" / "entropy"
    folder.mkdir(parents=True)
    files = {"__init__.py": "", "measure.py": MEASURE, "shown.py": COLUMNS + PUBLISHED}
    for name, text in (files | {"published.csv": "\n".join(LINES)}).items():
        (folder / name).write_text(text)
    (tmp_path / "mylab" / "__init__.py").write_text("")
    yield folder
    forget_own()


CONFIG = changed("measures", {"entropy": {"measure": "mylab.entropy"}, "reproduction": {}}, VALID)


def test_every_file_is_read_by_its_quantity() -> None:
    files = sorted(PACKAGE.glob("*/*/*published.csv"))
    assert len(files) >= 14
    for file in files:
        of_models = file.name.removesuffix("published.csv")
        described = components.describe("published", of_models + file.parent.name)
        assert described is not None and described.location.file == file.with_name("shown.py")
        assert str(file.relative_to(PACKAGE)) in described.facts["DATA"]


def test_five_columns_are_enough(own: Path) -> None:
    short = [*LINES[:3], "where,name,published,tolerance,column", "layer=2,entropy at the end,0.5,0.1,entropy"]
    (own / "published.csv").write_text("\n".join(short))
    make_plan(CONFIG)
    (value,) = [value for value in published_numbers() if value["table"] == "mylab.entropy"]
    assert (value["source"], value["setting"], value["at"]) == ("entropy", "small", "training=short;depth=2")
    usual = [value[name] for name in ("kind", "sense", "what", "less")]
    assert usual == ["measured", "equal", "entropy at the end", ""]


def test_the_example_of_the_page_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    component_pages.write(tmp_path, component_pages.files("published"))
    monkeypatch.syspath_prepend(tmp_path)
    config = changed("measures", component_pages.entries("published")["measures"], VALID)
    assert "lab.spread" in make_plan(config).measures["reproduction"].tables
    (value,) = [value for value in published_numbers() if value["table"] == "lab.spread"]
    assert (value["published"], value["column"]) == (0.5, "spread")
    forget_own()
    (tmp_path / "lab" / "spread.py").write_text("def measure(context):\n    return []\n")
    with pytest.raises(RankfallError, match=r"'lab\.spread' is a file and a folder"):
        make_plan(config)
    forget_own()


def test_an_edit_of_the_file_makes_the_comparison_stale_and_nothing_else(own: Path) -> None:
    before = make_plan(CONFIG).measures
    (own / "published.csv").write_text("\n".join(LINES).replace("0.5", "0.6"))
    after = make_plan(CONFIG).measures
    assert before["reproduction"].key != after["reproduction"].key and before["entropy"].key == after["entropy"].key


WRONG = {
    "0.5,equal": ("half,equal", "published 'half' is not a number"),
    "small,architecture": ("smal,architecture", "setting 'smal' is unknown; did you mean 'small'?\nknown are any, small;"),
    "entropy: Nobody": ("enthropy: Nobody", "source 'entropy' is unknown; did you mean 'enthropy'?"),
    ",,,,,": (",", "more or fewer fields than the header"),
}  # fmt: skip


@pytest.mark.parametrize("old", WRONG)
def test_what_is_wrong_is_named_before_anything_runs(old: str, own: Path) -> None:
    new, message = WRONG[old]
    (own / "published.csv").write_text("\n".join(LINES).replace(old, new, 1))
    with pytest.raises(RankfallError) as error:
        make_plan(CONFIG)
    assert message in str(error.value) and "published.csv" in str(error.value)

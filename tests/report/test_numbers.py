"""Guards the numbers of pages: each is computed from a table, as `docs/numbers.yaml` says, and no page has one that is not there."""

import re
from pathlib import Path

import pytest

from rankfall import cli
from rankfall.commands.docs import NUMBER, TABLE, check_page
from rankfall.errors import RankfallError
from rankfall.report import tables
from rankfall.report.doc_numbers import Definitions, Quotations, operands, read_definitions

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CELLS = ((0, 1, 0.25), (1, 1, 0.75), (0, 2, 0.5), (1, 2, 0.0), (2, 2, 0.125))
ROWS = [
    {"model": f"m{heads}", "depth": 6, "heads": heads, "length": length, "log10_paths": 1.0, "proportion": proportion}
    for length, heads, proportion in CELLS
]


@pytest.fixture
def results(tmp_path):
    tables.write("path_counts", ROWS, tmp_path / "results" / "tables" / "path_counts.parquet")
    return tmp_path / "results"


def the_file(folder, numbers, tables=""):
    path = folder / "numbers.yaml"
    path.parent.mkdir(exist_ok=True)
    text = "runs:\n  default: {command: make run, tables: results/tables}\n"
    path.write_text(
        f"{text}  big: {{command: make big, tables: nowhere, commit: abc, date: 2026-01-01}}\nnumbers:\n{numbers}"
        + (f"tables:\n{tables}" if tables else "")
    )
    return path


def quotations(results, tmp_path, numbers, tables=""):
    return Quotations(read_definitions(the_file(tmp_path, numbers, tables)), {"default": results / "tables"})


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("value: rows", 5),
        ("where: heads == 2, value: rows", 3),
        ("where: heads == 1, value: std proportion", 0.5 / 2**0.5),
        ("where: heads == 2 and length == 2, value: only proportion", 0.125),
        ("value: mean proportion, by: heads, of: max", 0.5),  # of 0.5 and 0.625 / 3
        ("value: sum proportion, by: heads", (1.0 + 0.625) / 2),  # a mean of two sums, not the sum over all rows by two
    ],
)
def test_statistics_have_known_answers(results, tmp_path, number, value):
    quoted = quotations(results, tmp_path, f"  n: {{table: path_counts, {number}}}\n")
    assert quoted.values(quoted.defined.numbers["n"]) == [pytest.approx(value)]


def test_arithmetic_digits_spread_and_each(results, tmp_path):
    text = (
        "  part: {table: path_counts, each: {heads: [1, 2], which: {first: 0, last: 1}}, value: sum proportion,"
        " where: heads == $heads and length == $which}\n"
        "  ratio: {value: (part_1_first - part_2_last) / part_1_last * 3, shown: '{:.0%}'}\n"
        "  large: {value: part_1_last * 1234567 * 4 / 3, digits: 3, shown: '{:,.0f}'}\n"
        "  sum: {table: path_counts, value: sum proportion, where: length < 2, spread: heads, shown: '{:.2f} ± {:.3f}'}\n"
        "  first: {table: path_counts, value: sum proportion, where: length == 0}\n"
        "  share: {value: first / sum, spread: heads, shown: '{:.0%} ± {:.0%}'}\n"
    )
    quoted = quotations(results, tmp_path, text)
    written = {name: quoted.write(number) for name, number in quoted.defined.numbers.items()}
    assert [written[f"part_{n}"] for n in ("1_first", "1_last", "2_first", "2_last")] == ["0.25", "0.75", "0.5", "0.0"]
    assert (written["ratio"], written["large"]) == ("100%", "1,230,000")
    assert (written["sum"], written["share"]) == ("1.50 ± 0.354", "50% ± 53%")  # 1.0 and 0.5; 0.25 and 1
    total = quoted.defined.numbers["sum"]
    agree = [quoted.agrees(total, words, written["sum"]) for words in ("1.50 ± 0.354", "2.50 ± 0.99", "2.57 ± 0.35")]
    assert agree == [True, True, False]  # three times .354, the deviation of a difference of two means over two


COUNTS = (
    "  counts:\n    head: heads | of model\n    cells: {table: path_counts, value: sum proportion, shown: '{:.2f}', where: depth == 6}\n"
    "    rows: {one | m1: heads == 1, 'heads': [2]}\n"
    "    columns: {none: length == 0, 'length': [1, 2], all of them: {value: rows, shown: '{}'}}\n"
)
WRITTEN = """| heads | of model | none | 1 | 2 | all of them |
| --- | --- | --- | --- | --- | --- |
| one | m1 | 0.25 | 0.75 | - | 2 |
| 2 | 0.50 | 0.00 | 0.12 | 3 |
"""


def test_the_command_writes_tables_and_finds_a_cell_that_differs(results, tmp_path, monkeypatch, capsys):
    the_file(tmp_path / "docs", "  {}\n", COUNTS + "    missing: '-'\n")
    page = tmp_path / "README.md"
    page.write_text(f"a\n\n<!-- table: counts -->\n\n{WRITTEN}\n<!-- /table -->\n\n0.5\n")
    whole = page.read_text()
    monkeypatch.chdir(tmp_path)
    ask = ["docs", "--results", str(results)]
    assert cli.main([*ask, "--check"]) == 0
    page.write_text(whole.replace("0.75", "0.76"))
    assert cli.main([*ask, "--check"]) == 1
    assert "0.76" in page.read_text() and "1 differ" in capsys.readouterr().out
    assert cli.main(ask) == 0
    assert page.read_text() == whole
    with pytest.raises(RankfallError, match=r"one \| m1, 2: no row of path_counts .*`missing`"):
        quotations(results, tmp_path, "  {}\n", COUNTS).write_table("counts")


def test_the_command_writes_says_and_is_then_done(results, tmp_path, monkeypatch, capsys):
    numbers = (
        "  n: {table: path_counts, value: rows}\n  other: {table: path_counts, value: rows, run: big}\n"
        "  law: {table: orders, value: rows}\n"
    )
    the_file(tmp_path / "docs", numbers)
    page = tmp_path / "README.md"
    words = "<!--=n-->7<!--/--> <!--=other-->8<!--/--> <!--=law-->9<!--/--> <!-- run: big -->0.3<!-- /run -->\n"
    page.write_text(words)
    monkeypatch.chdir(tmp_path)
    ask = ["docs", "--results", str(results)]
    assert cli.main([*ask, "--check"]) == 1
    assert page.read_text() == words
    output = capsys.readouterr().out
    assert "README.md: n: the page says '7', the tables '5'" in output
    assert "the run big has no folder of tables here" in output and "orders.parquet is missing" in output
    assert "a part is of `make big`, written 2026-01-01 (abc)" in output
    assert cli.main([*ask, "--from", f"big={results / 'tables'}"]) == 0
    assert page.read_text() == words.replace("7", "5").replace("8", "5")
    for text, wrong in [("<!--=n-->1\n<!--/-->", "has no end"), ("<!--=m-->1<!--/-->", "does not define 'm'")]:
        page.write_text(text)
        assert cli.main(ask) == 2
        assert wrong in capsys.readouterr().err


@pytest.fixture(scope="module")
def ours() -> Definitions:
    return read_definitions(ROOT / "docs" / "numbers.yaml")


def test_our_pages_name_numbers_that_are_defined_and_all_of_them(ours):
    text = "".join(page.read_text() for page in PAGES)
    for page in PAGES:
        check_page(page.read_text(), ours)
    used = {name for name, _ in NUMBER.findall(text)}
    used |= {name for number in ours.numbers.values() if not number.table for name in operands(number)}
    assert ours.numbers.keys() - used == set()
    assert sorted(ours.tables) == sorted(name for name, _ in TABLE.findall(text))


def test_readme_quotes_the_first_sentences_of_the_findings():
    """README has plain numbers, without the marks that `rankfall docs` fills in."""
    findings = re.sub(r"<!--.*?-->", "", (ROOT / "docs" / "findings.md").read_text())
    answers = re.findall(r"^\*\*(.*?)\*\*", findings, re.MULTILINE)
    section = (ROOT / "README.md").read_text().partition("## What it finds")[2].partition("\n## ")[0]
    quotes = re.findall(r"^- (.*)$", section, re.MULTILINE)
    assert len(quotes) >= 5
    assert [quote for quote in quotes if quote not in answers] == []

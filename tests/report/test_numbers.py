"""Guards the numbers of pages: each is computed from a table, as `docs/numbers.yaml` says, and no page has one that is not there."""

import re
from pathlib import Path

import pytest

from rankfall import cli
from rankfall.errors import RankfallError
from rankfall.report import pages, tables
from rankfall.report.numbers import Numbers, read
from rankfall.report.values import Tables, compute, compute_spread, write_number, write_table

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def count(length, heads, proportion):
    return {
        "model": f"m{heads}",
        "depth": 6,
        "heads": heads,
        "length": length,
        "log10_paths": 1.0,
        "proportion": proportion,
    }


ROWS = [count(0, 1, 0.25), count(1, 1, 0.75), count(0, 2, 0.5), count(1, 2, 0.0), count(2, 2, 0.125)]


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


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("value: rows", 5),
        ("where: heads == 2, value: rows", 3),
        ("where: heads == 1, value: mean proportion", 0.5),
        ("where: heads == 1, value: std proportion", 0.5 / 2**0.5),
        ("where: heads == 2 and length == 2, value: only proportion", 0.125),
        ("value: mean proportion, by: heads, of: max", 0.5),  # of 0.5 and 0.625 / 3
        ("value: sum proportion, by: heads", (1.0 + 0.625) / 2),  # a mean of two sums, not the sum over all rows by two
    ],
)
def test_statistics_have_known_answers(results, tmp_path, number, value):
    numbers = read(the_file(tmp_path, f"  n: {{table: path_counts, {number}}}\n"))
    assert compute("n", numbers, Tables({"default": results / "tables"})) == pytest.approx(value)


def test_arithmetic_digits_and_each(results, tmp_path):
    text = (
        "  part: {table: path_counts, each: {heads: [1, 2], which: {first: 0, last: 1}}, value: sum proportion,"
        " where: heads == $heads and length == $which}\n"
        "  ratio: {value: (part_1_first - part_2_last) / part_1_last * 3, shown: '{:.0%}'}\n"
        "  large: {value: part_1_last * 1234567 * 4 / 3, digits: 3, shown: '{:,.0f}'}\n"
    )
    numbers, at = read(the_file(tmp_path, text)), Tables({"default": results / "tables"})
    assert [compute(f"part_{n}", numbers, at) for n in ("1_first", "1_last", "2_first", "2_last")] == [
        0.25, 0.75, 0.5, 0.0,
    ]  # fmt: skip
    assert write_number("ratio", numbers, at) == "100%"
    assert write_number("large", numbers, at) == "1,230,000"


def test_a_spread_is_over_numbers_of_one_seed_alone(results, tmp_path):
    text = (
        "  sum: {table: path_counts, value: sum proportion, where: length < 2, spread: heads, shown: '{:.2f} ± {:.3f}'}\n"
        "  first: {table: path_counts, value: sum proportion, where: length == 0}\n"
        "  share: {value: first / sum, spread: heads, shown: '{:.0%} ± {:.0%}'}\n"
    )
    numbers, at = read(the_file(tmp_path, text)), Tables({"default": results / "tables"})
    assert compute_spread("sum", numbers, at) == (pytest.approx(0.5 / 2**0.5), 2)  # of 1.0 and 0.5
    assert compute_spread("share", numbers, at) == (pytest.approx(0.75 / 2**0.5), 2)  # of 0.25 and 1
    assert [write_number(name, numbers, at) for name in ("sum", "share")] == ["1.50 ± 0.354", "50% ± 53%"]
    one = read(the_file(tmp_path, "  n: {table: path_counts, value: sum length, where: heads == 1, spread: heads}\n"))
    with pytest.raises(RankfallError, match="n: its spread needs two values of heads, but its rows have 1"):
        write_number("n", one, at)


ZEN, XEON = "AMD EPYC, family 25 model 17, AVX512", "Intel Xeon, family 6 model 143, AVX512"


@pytest.mark.parametrize(
    ("processor", "said", "status"),
    [
        (ZEN, "1.50 ± 0.35", 0),  # what the tables say: the same everywhere
        (ZEN, "2.50 ± 0.35", 1),  # on the same kind of processor a number is the same bits
        (XEON, "2.50 ± 0.99", 0),  # three times .354, the deviation of a difference of two means over two
        (XEON, "2.57 ± 0.35", 1),
        ("", "2.50 ± 0.35", 1),  # not recorded: nothing excuses a difference
    ],
)
def test_on_another_processor_a_number_agrees_within_its_spread(tmp_path, monkeypatch, capsys, processor, said, status):
    about = tables.provenance() | ({"processor": processor} if processor else {})
    tables.write("path_counts", ROWS, tmp_path / "results" / "tables" / "path_counts.parquet", about)
    text = (
        "  n: {table: path_counts, value: sum proportion, where: length < 2, spread: heads, shown: '{:.2f} ± {:.2f}'}\n"
    )
    file = the_file(tmp_path / "docs", text + "  rows: {table: path_counts, value: rows}\n")
    command = "make run, tables: results/tables"
    file.write_text(file.read_text().replace(command, f'{command}, processor: "{ZEN.partition(", ")[2]}"'))
    page = tmp_path / "README.md"
    page.write_text(f"<!--=n-->{said}<!--/--> <!--=rows-->5<!--/-->\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["docs", "--check"]) == status
    assert ("within its spread, on another kind of processor" in capsys.readouterr().out) == (
        status == 0 and "2" in said
    )
    page.write_text("<!--=rows-->6<!--/-->")
    assert cli.main(["docs", "--check"]) == 1, "a number without a spread is the same on every processor"
    assert cli.main(["docs"]) == 0
    if processor:
        assert read(file).runs["default"].processor == processor.partition(", ")[2]
        assert file.read_text().count("processor:") == 1


TABLE = (
    "  counts:\n    head: heads | of model\n    cells: {table: path_counts, value: sum proportion, shown: '{:.2f}', where: depth == 6}\n"
    "    rows: {one | m1: heads == 1, 'heads': [2]}\n"
    "    columns: {none: length == 0, 'length': [1, 2], all of them: {value: rows, shown: '{}'}}\n"
)
WRITTEN = """| heads | of model | none | 1 | 2 | all of them |
| --- | --- | --- | --- | --- | --- |
| one | m1 | 0.25 | 0.75 | - | 2 |
| 2 | 0.50 | 0.00 | 0.12 | 3 |
"""


def test_a_table_has_known_answers(results, tmp_path):
    at = Tables({"default": results / "tables"})
    missing = TABLE + "    missing: '-'\n"
    assert write_table("counts", read(the_file(tmp_path, "  {}\n", missing)), at) == WRITTEN
    with pytest.raises(RankfallError, match=r"table counts: one \| m1 lacks a number; `missing`"):
        write_table("counts", read(the_file(tmp_path, "  {}\n", TABLE)), at)
    empty = missing.replace("[2]", "[2, 9]").replace(", all of them: {value: rows, shown: '{}'}", "")
    with pytest.raises(RankfallError, match="table counts: 9 has no number at all"):
        write_table("counts", read(the_file(tmp_path, "  {}\n", empty)), at)


def test_the_command_writes_tables_and_finds_a_cell_that_differs(results, tmp_path, monkeypatch, capsys):
    the_file(tmp_path / "docs", "  {}\n", TABLE + "    missing: '-'\n")
    page = tmp_path / "README.md"
    page.write_text(f"a\n\n<!-- table: counts -->\n\n{WRITTEN}\n<!-- /table -->\n\n0.5\n")
    whole = page.read_text()
    monkeypatch.chdir(tmp_path)
    ask = ["docs", "--results", str(results)]
    assert cli.main([*ask, "--check"]) == 0
    for wrong in (whole.replace("0.75", "0.76"), whole.replace("| 2 | 0.50 | 0.00 | 0.12 | 3 |\n", "")):
        capsys.readouterr()
        page.write_text(wrong)
        assert cli.main([*ask, "--check"]) == 1
        assert "1 differ" in capsys.readouterr().out
        assert page.read_text() == wrong
        assert cli.main(ask) == 0
        assert page.read_text() == whole
    assert pages.find_typed(whole) == ["0.5"]


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("table: path_count, value: rows", "no table 'path_count'; the nearest is 'path_counts'"),
        ("table: path_counts, value: mean lenght", "no column of path_counts 'lenght'; the nearest is 'length'"),
        ("table: path_counts, value: meen length", "no statistic 'meen'; the nearest is 'mean'"),
        ("table: path_counts, value: rows, wher: depth == 6", "no key 'wher'; the nearest is 'where'"),
        ("table: path_counts, value: rows, run: bigg", "no run 'bigg'; the nearest is 'big'"),
        ("value: other * 2", "no number 'other'"),
        ("table: path_counts, where: 'depth ==', value: rows", "is not an expression"),
    ],
)
def test_what_cannot_be_computed_is_refused_before_a_table_is_read(tmp_path, number, said):
    with pytest.raises(RankfallError, match=re.escape(said)) as caught:
        read(the_file(tmp_path, f"  n: {{{number}}}\n"))
    assert "\n" not in str(caught.value)


def test_the_command_writes_says_and_is_then_done(results, tmp_path, monkeypatch, capsys):
    numbers = (
        "  n: {table: path_counts, value: rows}\n  other: {table: path_counts, value: rows, run: big}\n"
        "  law: {table: orders, value: rows}\n"
    )
    the_file(tmp_path / "docs", numbers)
    page = tmp_path / "README.md"
    said = "<!--=n-->7<!--/--> <!--=other-->8<!--/--> <!--=law-->9<!--/--> <!-- run: big -->0.3<!-- /run -->\n"
    page.write_text(said)
    monkeypatch.chdir(tmp_path)
    ask = ["docs", "--results", str(results)]
    assert cli.main([*ask, "--check"]) == 1
    assert page.read_text() == said
    told = capsys.readouterr().out
    assert "README.md: n: the page says '7', the tables '5'" in told
    assert "the run big has no folder of tables here" in told
    assert "the run default has no orders.parquet" in told
    assert "1 numbers are of `make big`, written 2026-01-01 (abc)" in told
    assert cli.main(ask) == 0
    assert page.read_text() == said.replace("7", "5")
    assert cli.main([*ask, "--check"]) == 0
    assert cli.main([*ask, "--from", f"big={results / 'tables'}"]) == 0
    assert page.read_text() == said.replace("7", "5").replace("8", "5")


@pytest.mark.long
def test_every_picture_of_our_pages_is_of_a_run(ours):
    shown = {name for page in PAGES for name in re.findall(r"images/([\w.]+\.png)\)", page.read_text())}
    assert shown == set(ours.pictures) == {path.name for path in (ROOT / "docs" / "images").glob("*.png")}


def test_a_folder_that_is_not_there_and_a_broken_marker_are_one_line(results, tmp_path, monkeypatch, capsys):
    the_file(tmp_path / "docs", "  n: {table: path_counts, value: rows}\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["docs", "--results", "nowhere"]) == 2
    assert "there is no folder nowhere/tables; `make run` makes it" in capsys.readouterr().err
    for text, said in [
        ("<!--=n-->1\n<!--/-->", "has no <!--/--> in its line"),
        ("<!--=m-->1<!--/-->", "no number 'm'"),
    ]:
        (tmp_path / "README.md").write_text(text)
        assert cli.main(["docs", "--results", str(results)]) == 2
        assert said in capsys.readouterr().err


@pytest.fixture(scope="module")
def ours() -> Numbers:
    return read(ROOT / "docs" / "numbers.yaml")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_marker_of_our_pages_names_a_number(page, ours):
    assert list(pages.problems(page.read_text(), ours)) == []


def test_every_number_is_used(ours):
    text = "".join(page.read_text() for page in PAGES)
    used = {name for name, _ in pages.NUMBER.findall(text)}
    sums = " ".join(number.value for number in ours.numbers.values() if not number.table)
    cells = {name for table in ours.page_tables.values() for row in table.cells for name in row}
    assert [
        name for name in ours.numbers.keys() - cells if name not in used and not re.search(rf"\b{name}\b", sums)
    ] == []
    assert sorted(ours.page_tables) == sorted(name for name, _ in pages.TABLE.findall(text))
    computed = {number.run for number in ours.numbers.values()}
    for name, run in ours.runs.items():
        assert name == "default" or (run.command and run.commit and run.date)
        assert name == "default" or name in computed or f"<!-- run: {name} -->" in text


def test_no_result_of_the_findings_is_typed_by_hand():
    findings = (ROOT / "docs" / "findings.md").read_text()
    assert len(pages.NUMBER.findall(findings)) >= 20
    assert pages.find_typed(pages.RUN.sub("", findings)) == []
    assert pages.find_typed("it keeps .94, or 12 % of 0.5, of `0.1` <!-- 0.2 --> version 1.2.3 <!--=n-->0.3<!--/-->") == [
        ".94", "12 %", "0.5",
    ]  # fmt: skip


def test_readme_quotes_the_first_sentences_of_the_findings():
    """README has plain numbers, without the marks that `rankfall docs` fills in."""
    findings = re.sub(r"<!--.*?-->", "", (ROOT / "docs" / "findings.md").read_text())
    answers = re.findall(r"^\*\*(.*?)\*\*", findings, re.MULTILINE)
    section = (ROOT / "README.md").read_text().partition("## What it finds")[2].partition("\n## ")[0]
    quotes = re.findall(r"^- (.*)$", section, re.MULTILINE)
    assert len(quotes) >= 5
    assert [quote for quote in quotes if quote not in answers] == []

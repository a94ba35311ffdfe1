"""Guards that a value beyond any use is refused in one line and at once, however it is written: no traceback, no full memory, no wait."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from plans import VALID, changed, refusal

from rankfall.errors import RankfallError
from rankfall.run.config import bounds
from rankfall.run.plan import make_plan

AT_ONCE = 1.0  # seconds of processor time; all but a hundredth of it is head room
ENTRY = VALID["grid"][0]


def nested(depth: int, width: int = 1) -> list[Any]:
    """A list in a list in a list, each there `width` times."""
    value: Any = 2
    for _ in range(depth):
        value = [value] * width
    return list(value)


def circle() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["again"] = made
    return made


MANY = r"more than 1,000,000 values, counting what aliases repeat"
DEEP = r"values are nested more than 50 deep, or an alias names what it stands in"
# (where, what, what the message says)
CASES: dict[str, tuple[str, Any, str]] = {
    "dropout that drops all": (
        "trainings/short/dropout",
        0.999999,
        "trainings.short.dropout: 0.999999 cannot be drawn",
    ),
    "dropout that drops nothing": ("trainings/short/dropout", 1e-9, "the nearest that can is 0"),
    "range": ("grid/0/seed", "0..3000000000", "grid.0.seed: '0..3000000000' is too long a range"),
    "range in a list": ("grid/0/seed", [1, "2..900000", "900001..1800000"], "too long a range"),
    "range of many digits": ("grid/0/seed", "0.." + "9" * 5000, "beyond 9223372036854775807"),
    "range in exclude": ("grid/0/exclude", [{"seed": "0..3000000000"}], "too long a range"),
    "range in cells": ("measures/paths/cells", {"seed": "0..3000000000"}, "measures.paths.cells.seed"),
    "cross product": (
        "grid/0",
        {**ENTRY, "seed": "0..99999", "depth": list(range(1, 999)), "training.lr": [i / 999 for i in range(1, 999)]},
        "grid.0: with this entry the grid has 199,200,800,000 cells; allowed: at most 1,000,000",
    ),
    "cross product of include": (
        "grid/0/include",
        [{"seed": "0..99999", "depth": list(range(1, 999))}],
        "at most 1,000,000",
    ),
    "label": ("architectures/" + "a" * 300, {}, "architectures: 'aaaa.* has 300 letters .* at most 100 letters"),
    "component": ("architectures/san/norm", "n" * 300, "architectures.san.norm: .* at most 200 letters"),
    "component of one's own": ("architectures/san/norm", "n" * 300 + ":x", "at most 200 letters"),
    "folder": ("results", "r/" + "x" * 256, "results: .* 255 bytes"),
    "folder with a zero": ("results", "a\0b", "results: .* contains a control character.*"),
    "aliases of aliases": ("tasks/sorting/symbols", nested(40, 2), MANY),
    "aliases of aliases as axis": ("grid/0/depth", nested(40, 2), MANY),
    "depth": ("grid/0/depth", nested(5000), f"grid: {DEEP}"),
    "depth in an option": ("measures/paths/counts", nested(5000), f"measures: {DEEP}"),
    "circle": ("measures/paths/cells", circle(), f"measures: {DEEP}"),
    "integer for a number": ("trainings/short/lr", 10**400, "trainings.short.lr: an integer of 1329 bits"),
    "integer for a size": ("architectures/san/width", 10**12 + 1, "allowed: <= 1000000"),
    "integer for an option": ("tasks/sorting/train", 10**400, "tasks.sorting.train: an integer of 1329 bits"),
    "integer in a list": ("measures/paths/counts", [2, 10**200], "measures.paths.counts.1: an integer"),
    "threads": ("compute", {"threads": 10**6}, "compute.threads: 1000000 is out of range; allowed: <= 1024"),
    "infinite as text": ("trainings/short/lr", "1e400", "'1e400' is not a finite number"),
    "digits": ("trainings/short/lr", "1" * 90_000, "is text, not a number"),
    "text": ("name", "x" * 200_000, "name: a text of 200,000 characters; allowed: at most 100,000"),
    "half a character": ("tasks/sorting", {"task": "memorization", "text": "\ud800"}, "half a character"),
    "bases": (
        "architectures",
        {f"a{i}": {"base": f"a{i + 1}"} for i in range(3000)} | {"a3000": {}},
        "is the 50th base of a base",
    ),
    "device": ("compute", {"device": "cuda:" + "9" * 5000}, r"compute.device: 'cuda:9+\.\.\. is not possible"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_value_beyond_any_use_is_refused_at_once(case: str) -> None:
    path, value, wanted = CASES[case]
    config = changed(path, "here")
    *steps, last = path.split("/")
    inner: Any = config
    for step in steps:
        inner = inner[int(step)] if isinstance(inner, list) else inner[step]
    inner[int(last) if isinstance(inner, list) else last] = value  # as it is: copying some of these is the attack
    began = time.process_time()
    message = refusal(config)
    assert time.process_time() - began < AT_ONCE
    with pytest.raises(RankfallError, match=wanted):
        raise RankfallError(message)
    assert len(message) < 500


def lines(*text: str) -> str:
    return "\n".join(text) + "\n"


FILES: dict[str, tuple[bytes, str]] = {
    "laughs.yaml": (
        lines("a0: &a0 [x, x]", *(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 60))).encode(),
        DEEP.partition(",")[0] + f"|{MANY}",
    ),
    "merged.yaml": (
        lines(
            "a0: &a0 {k: x}", *(f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}, *a{i - 1}]}}" for i in range(1, 24))
        ).encode(),
        MANY,
    ),
    "circle.yaml": (b"tasks: &a [*a]\n", DEEP),
    "deep.yaml": (b"tasks: " + b"[" * 20_000, "nested too deep|nested more than"),
    "deep.json": (b'{"tasks": ' + b"[" * 100_000, "nested too deep"),
    "large.yaml": (b"#" * 1_000_001, "larger than 1,000,000 bytes"),
    "bytes.yaml": (b"name: \xff\xfe\n", "is not text in UTF-8"),
    "digits.json": (b'{"name": ' + b"9" * 5000 + b"}", "digits"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_beyond_any_use_is_refused_at_once(name: str, tmp_path: Path) -> None:
    content, wanted = FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    began = time.process_time()
    with pytest.raises(RankfallError, match=wanted) as caught:
        make_plan(path)
    assert time.process_time() - began < 2 * AT_ONCE
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


def test_what_is_large_but_of_use_passes() -> None:
    bounds.check_values({"grid": [{"seed": list(range(50_000))}], "deep": nested(45), "text": "x" * 99_999})
    assert len(make_plan(changed("trainings/short/dropout", 0.9999)).cells) == 12
    assert make_plan(changed("compute", {"shard_minutes": 5e-324})).shards


def test_a_long_filter_is_searched_quickly() -> None:
    config = changed("grid/0", {**ENTRY, "depth": 2, "seed": "0..9999", "exclude": [{"seed": "1..9999"}]})
    began = time.process_time()
    assert {cell.seed for cell in make_plan(config).cells} == {0}
    assert time.process_time() - began < 4 * AT_ONCE


def test_zero_has_one_key_whatever_its_sign() -> None:
    plans = [make_plan(changed("trainings/short/weight_decay", value)) for value in (0.0, -0.0, 0, "-0e0")]
    assert len({tuple(cell.key for cell in plan.cells) for plan in plans}) == 1


def test_true_is_no_one_of_a_literal() -> None:
    from rankfall.run.config.options import check

    with pytest.raises(RankfallError, match="one of 1, 2"):
        check("Literal[1, 2]", True, "x")
    assert check("Literal[1, 2]", 2, "x") == 2


def test_a_written_configuration_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(VALID))
    assert [cell.key for cell in make_plan(path).cells] == [cell.key for cell in make_plan(VALID).cells]

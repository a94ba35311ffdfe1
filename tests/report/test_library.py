"""Guards the page's library: put together once, read afterwards, and never used where it is not whole."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import vl_convert

from rankfall.report.page import pack


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    pack.bundle.cache_clear()
    yield
    pack.bundle.cache_clear()


def test_it_is_put_together_once_and_again_where_it_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda: f"script {made.append(1) or len(made)}")

    def bundle() -> str:
        pack.bundle.cache_clear()
        return pack.bundle()

    first = bundle()
    assert first == "script 1" and bundle() == first
    (kept,) = (tmp_path / "rankfall" / "vega").iterdir()
    whole = kept.read_text()
    for broken in (whole[:-1], whole.replace("script", "scripT"), "", "script"):
        kept.write_text(broken)
        assert bundle() == f"script {len(made)}" and kept.read_text().endswith(f"script {len(made)}")
    assert len(made) == 5

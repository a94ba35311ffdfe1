"""Guards what enters reStructuredText: docutils reads it as words, whatever it says, and finds nothing to complain of."""

import re

import pytest

from rankfall.report.labels import write_float
from rankfall.report.style import escape, unescape

HOSTILE = [
    "|res(X)| / |X| by layer",
    "x\n\n.. raw:: html\n\n   <script>window.ran = 1</script>\n",
    "see `there <https://example.org>`_",
    "*emphasis and `a role :raw-html:`x` and _target: and word_ and [1]_",
    "- a list", "a title\n=======", "ends with ::", "a\\", "=====  =====", "σ₂/σ₁ ≤ ½",
]  # fmt: skip


def rendered(text: str) -> tuple[str, str]:
    """What a reader sees of a text between others, and what docutils says about it."""
    import html
    import io

    from docutils.core import publish_parts

    said = io.StringIO()
    found = publish_parts(f"Before.\n\n{text}\n\nAfter.\n", writer="html", settings_overrides={"warning_stream": said})
    paragraphs = re.findall(r"<p>(.*?)</p>", found["body"], flags=re.DOTALL)
    assert len(paragraphs) == 3 and "<script" not in found["body"], found["body"]
    return html.unescape(paragraphs[1]), said.getvalue()


@pytest.mark.parametrize("text", HOSTILE)
def test_text_stays_text(text: str) -> None:
    plain = " ".join(text.split())
    seen, said = rendered(escape(text))
    assert (seen, said) == (plain, "")
    assert unescape(escape(text)) == plain


def test_nothing_is_a_template_and_a_sentence_reads_as_it_was() -> None:
    assert "{{" not in escape("{{ 7 * 7 }}") and "{%" not in escape("{% raw %}")
    assert (
        escape("mean ± deviation over 3 seeds, at depth 6 (width 48).")
        == "mean ± deviation over 3 seeds, at depth 6 (width 48)."
    )


def test_a_large_whole_number_is_written_as_it_is() -> None:
    """3 * 2^70 ended in other digits: halves are written as seen from above, and a number of this size has none."""
    assert write_float(3.0 * 2**70, 2) == f"{3 * 2**70:,}" and write_float(0.125, 2) == "0.13"

"""Guards the documentation as a site: every page is listed, and every link leads somewhere."""

import re
from pathlib import Path

import pytest
import yaml

from rankfall.report.claim_text import page_of_verdicts
from rankfall.report.docs import document
from rankfall.run.config.schema import document_fields

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
OUTSIDE = {f"{name.lower()}.md": ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")}
# By docs/hooks.py.
CLAIMS = page_of_verdicts(DOCS / "claims.csv")
GENERATED = {"tables.md": document(), "configuration.md": document_fields(), "claims.md": CLAIMS}


def list_pages(entries):
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for value in entry.values():
                yield from list_pages([value] if isinstance(value, str) else value)


def test_every_page_is_in_the_navigation_once():
    pages = list_pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    assert sorted(pages) == sorted([*(str(page.relative_to(DOCS)) for page in PAGES), *OUTSIDE, *GENERATED])


def slug(heading):
    """Return the anchor of a heading of letters, digits and punctuation, as GitHub and mkdocs both have it."""
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading.replace("`", "").lower()).strip())


@pytest.mark.parametrize("page", [*PAGES, *OUTSIDE.values()], ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_a_page_lead_to_files_and_headings(page):
    """In the repository, without the site."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        made = GENERATED.get(file.name) if file.parent == DOCS else None
        assert made or file.exists(), f"{page.name}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", made or file.read_text(), re.MULTILINE)
            assert anchor in map(slug, headings), f"{page.name}: {target}"


def test_errors_that_the_questions_quote_are_said():
    """Each bold piece of code is in a source file, its parts in one line each."""
    sources = " ".join(file.read_text() for file in [*(ROOT / "src").rglob("*.py"), ROOT / "Makefile"])
    sources = re.sub(r"\"\s*\n\s*f?\"", "", sources)  # a text that goes over two lines
    quoted = re.findall(r"\*\*`([^`]+)`", (DOCS / "questions.md").read_text())
    assert len(quoted) >= 12
    parts = [(quote, part.strip()) for quote in quoted for part in re.split(r"'?\.\.\.'?", quote) if part.strip(" :'")]
    assert [quote for quote, part in parts if part not in sources and part.split(" ", 1)[0] != "unknown"] == []
    assert "unknown {" in sources

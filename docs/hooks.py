"""For mkdocs: pages that do not lie in docs/ as they are shown.

README.md, CONTRIBUTING.md and CHANGELOG.md lie outside. Their links to `docs/x.md` become links to `x.md`. A link to a file that is no page
of the site (sources, presets) is shown as the file's path. `tables.md` is written from the declarations of tables, `configuration.md` from
the types of a configuration, `claims.md` from docs/claims.csv and the files of claims.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from rankfall.report.claim_text import page_of_verdicts
from rankfall.report.docs import document
from rankfall.run.config.document import document_fields

ROOT = Path(__file__).parents[1]
OUTSIDE = {"README.md": "readme.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    for name, page in OUTSIDE.items():
        text = (ROOT / name).read_text().replace("](docs/", "](")
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, "tables.md", content=document()))
    files.append(File.generated(config, "configuration.md", content=document_fields()))
    files.append(File.generated(config, "claims.md", content=page_of_verdicts(ROOT / "docs" / "claims.csv")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    up = "../" * page.file.src_uri.count("/")
    return LINK.sub(lambda found: linked(found, files, up), markdown)


def linked(found: re.Match[str], files: Files, up: str) -> str:
    """A link to a page of the site, or the plain path of a file that exists in the repository and is none."""
    image, text, target, anchor = found[1], found[2], found[3], found[4] or ""
    name = re.sub(r"^(\.\./)+", "", target)
    if name in OUTSIDE:
        return f"{image}[{text}]({up}{OUTSIDE[name]}{anchor})"
    if "://" in target or files.get_file_from_path(target) or not (ROOT / name).exists():
        return found[0]
    return f"`{name}`" if text.strip("`") in (name, Path(name).name) else f"{text} (`{name}`)"

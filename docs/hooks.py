"""Add pages to the site that mkdocs does not find in docs/.

README.md, CONTRIBUTING.md and CHANGELOG.md are in the folder above. Their links to `docs/x.md` become links to `x.md`. A link to a file
that is no page (sources, presets) becomes the file's path. `tables.md` is written from the declarations of tables, `configuration.md`
from the types of a configuration, and `claims.md` from docs/claims.csv and the files of claims.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from rankfall.report.claim_text import page_of_verdicts
from rankfall.report.docs import document
from rankfall.run.config.schema import document_fields

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
    return LINK.sub(lambda match: replace_link(match, files, up), markdown)


def replace_link(match: re.Match[str], files: Files, up: str) -> str:
    """Return a link to a page of the site, or the path of a file of the repository that is no page."""
    image, text, target, anchor = match[1], match[2], match[3], match[4] or ""
    name = re.sub(r"^(\.\./)+", "", target)
    if name in OUTSIDE:
        return f"{image}[{text}]({up}{OUTSIDE[name]}{anchor})"
    if "://" in target or files.get_file_from_path(target) or not (ROOT / name).exists():
        return match[0]
    return f"`{name}`" if text.strip("`") in (name, Path(name).name) else f"{text} (`{name}`)"

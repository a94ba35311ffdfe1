"""The page's sections as HTML: headings, explanations, and elements that the script fills."""

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rankfall.annotations import DataFrame
from rankfall.report.labels import many
from rankfall.report.page.chart import charts
from rankfall.report.page.findings import Finding
from rankfall.report.published_numbers import PAPER
from rankfall.report.quantities import STUDIES
from rankfall.report.schema import schema
from rankfall.report.settings import say_setting

SECTIONS = {"scorecard": "Scorecard", **STUDIES, "published": "Published numbers and ours"}
SHORT = {"scorecard": "Scorecard", "rank": "Rank", "position": "Position", "identity": "Identity", "use": "Use and cost",
         "claims": "Claims", "published": "Published"}  # fmt: skip
Link = Callable[[str], str]  # text to HTML, with links to the glossary


def has(section: str, main: Mapping[str, Any]) -> bool:
    """Return whether the page has content for a section: its table or a chart."""
    table = {"published": "reproduction"}.get(section, section)
    return main.get(table) is not None or any(chart["study"] == section for chart in main["charts"])


def write_section(name: str, main: Mapping[str, Any], figures: Mapping[str, str], link: Link) -> str:
    """Return a section with its heading and the elements that the script fills."""
    title = html.escape(SECTIONS[name])
    inner = {"scorecard": SCORECARD, "published": PUBLISHED, "claims": CLAIMS if main["claims"] else ""}.get(name, "")
    for chart in main["charts"]:
        if chart["study"] == name:
            text = {key: html.escape(str(chart[key])) for key in ("name", "title")}
            inner += CHART.format(text=link(chart["text"]), **text)
    if name == "scorecard" and figures:
        inner += write_pictures(figures)
    return f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{title}</h2>{inner}</section>'


def write_pictures(figures: Mapping[str, str]) -> str:
    """Return a list of links to the figures, which are in a folder beside the page."""
    items = ""
    for name, caption in sorted((html.escape(name), html.escape(caption)) for name, caption in figures.items()):
        kinds = ", ".join(f'<a href="../figures/{name}.{kind.lower()}">{kind}</a>' for kind in ("PDF", "SVG", "CSV"))
        items += f'<li><a href="../figures/{name}.png">{name}</a> ({kinds}): {caption}</li>'
    count = many(len(figures), "figure")
    return f"<details><summary>Pictures for print, {count} with captions</summary><ul>{items}</ul></details>"


def write_findings(findings: Sequence[Finding], first: Sequence[Finding], sections: Sequence[str], link: Link) -> str:
    """Return the first findings, followed by the others in a section that can be opened."""
    texts = {True: "", False: ""}
    for finding in [*first, *(finding for finding in findings if finding not in first)]:
        to = f' <a href="#{finding.study}">{SHORT[finding.study]}</a>' if finding.study in sections else ""
        where = ", ".join(filter(None, (say_setting(finding.setting), finding.seeds)))
        note = f' <span class="note">{html.escape(where)}</span>' if where else ""
        texts[finding in first] += (
            f"<div><dt>{html.escape(finding.question)}</dt><dd>{link(finding.answer)}{to}{note}</dd></div>"
        )
    more = f'<details><summary>{len(findings) - len(first)} more</summary><dl class="findings">{texts[False]}</dl></details>'
    return f'<dl class="findings">{texts[True]}</dl>{more * bool(texts[False])}' if findings else ""


def write_opening(chart: Mapping[str, Any] | None, setting: str) -> str:
    """Return the picture of the first screen; empty without a chart."""
    if chart is None:
        return ""
    named = {key: html.escape(str(chart[key])) for key in ("name", "title")}
    return OPENING.format(setting=html.escape(setting), **named)


BESIDE = "In the checkout in which this page was made (the links work only while the page is in its original place):"


def read_sources(reproduction: DataFrame | None) -> dict[str, dict[str, str]]:
    """Return word for a source -> its declared `name`, `title` and `link`."""
    if reproduction is None:
        return {}
    papers = zip(*(reproduction[column] for column in ("source", *PAPER)))
    return {word: dict(zip(("name", "title", "link"), paper)) for word, *paper in papers}


def write_links(papers: Iterable[Mapping[str, str]], links: Mapping[str, str]) -> str:
    """Return links to the papers of the page's numbers, and to documents beside the page on this machine."""
    items = [
        f'<li><a href="{html.escape(paper["link"])}">{html.escape(paper["name"])}</a>: {html.escape(paper["title"])}</li>'
        for paper in papers
    ] or ["<li>This run has no published numbers.</li>"]
    beside = [f'<li><a href="{html.escape(href)}">{html.escape(title)}</a></li>' for title, href in links.items()]
    documents = f"<p>{BESIDE}</p><ul>{''.join(beside)}</ul>" if beside else ""
    return f"<ul>{''.join(items)}</ul>{documents}"


def say_uncharted(names: Iterable[str]) -> str:
    """Return a sentence on the tables that no chart or section of the page shows; empty if there are none."""
    shown = {"cells", "scorecard", "reproduction", "claims", *(chart.table for chart in charts())}
    uncharted = sorted(set(names) - shown)
    return f"No chart of this page is drawn from {', '.join(uncharted)}." if uncharted else ""


def write_download(name: str, frame: DataFrame, inside: bool) -> str:
    """Return a row of the list of tables."""
    csv = (
        f'<button type="button" data-csv="{name}" aria-label="{name} as CSV">CSV</button> '
        if inside
        else "too large for this page "
    )
    parquet = f'<a href="../tables/{name}.parquet" download aria-label="{name} as Parquet">Parquet</a>'
    row = html.escape(schema(name).row)
    return f'<tr><th scope="row">{name}</th><td>{row}</td><td>{len(frame):,}</td><td>{csv}{parquet}</td></tr>'


OPENING = (
    '<figure class="chart plain" id="opening" data-opening="{name}" data-setting="{setting}"><figcaption><strong>{title}</strong>: '
    '<span data-chosen></span>. <a href="#chart-{name}">Choose what it shows</a></figcaption><div class="controls" hidden></div>'
    '<div class="chips" role="toolbar" aria-label="Lines of the first picture"></div><div class="view" role="group" '
    'aria-label="Picture: {title}"></div><p class="says" aria-live="polite"></p></figure>'
)
SCORECARD = (
    '<h3>Setting: <span id="score-at" aria-live="polite"></span></h3>'
    "<p>Each row is an architecture of this setting, each column a headline number, with its standard deviation over seeds. The "
    "bluer, the more of the others keep less, compared seed by seed; a tie counts half. Dash: no such number. Blank: not measured. "
    "Select a heading to sort, a name for its parts, a number for its definition and networks.</p>"
    '<div class="controls"><label>setting<select id="score-setting"></select></label>'
    '<label>numbers<select id="score-part"></select></label>'
    '<label>show architectures with<input type="search" id="score-search" placeholder="any setting"></label>'
    '<span id="score-link"></span></div>'
    '<div class="score" role="region" aria-label="Scorecard"><table id="scorecard-table"></table></div>'
    '<p class="hint" id="score-count" role="status"></p>'
    '<details id="pairs"><summary>Compare two architectures, seed by seed</summary><div class="controls"><label>architecture'
    '<select id="pairs-one"></select></label><label>less<select id="pairs-other"></select></label></div>'
    '<p class="hint">Of each number: both means, and the mean of the differences over the seeds that both have, with its 95% interval '
    "(Student's t). Residuals are compared by their logarithms: a difference of 1 is a factor of ten.</p>"
    '<div class="scroll" role="region" aria-label="Two architectures" tabindex="0"><table id="pairs-table"></table></div></details>'
)
PUBLISHED = (
    "<p>Published numbers beside ours, worst first. A comparison holds if our number is within the tolerance of the published value, or "
    "on the side that the paper claims.</p>"
    '<div class="controls"><label>verdict<select id="published-verdict"><option value="">all</option><option>holds</option>'
    "<option>misses</option><option>not measured</option></select></label>"
    '<label>source<select id="published-source"><option value="">all</option></select></label>'
    '<label>text<input type="search" id="published-search" placeholder="what, place, setting"></label></div>'
    '<p class="hint" id="published-count" role="status"></p>'
    '<div class="scroll" role="region" aria-label="Published numbers and ours" tabindex="0"><table id="published-table"></table></div>'
)
CLAIMS = (
    "<p>Claims of papers about depth, with the rules that decide them here. A claim whose rule was changed after numbers were seen says "
    "so. Intervals are of 95% over seeds. The last column leads to the rows on which a verdict rests.</p>"
    '<div class="controls"><label>verdict<select id="claims-verdict"><option value="">all</option><option>holds</option>'
    "<option>holds only in part</option><option>contradicted</option><option>undecided</option></select></label>"
    '<label>text<input type="search" id="claims-search" placeholder="claim, paper, finding"></label></div>'
    '<p class="hint" id="claims-count" role="status"></p>'
    '<div class="scroll" role="region" aria-label="Claims" tabindex="0"><table id="claims-table"></table></div>'
)
CHART = (
    '<div class="chart" id="chart-{name}" data-chart="{name}"><h3>{title}</h3><p>{text}</p><div class="controls"></div>'
    '<div class="chips" role="toolbar" aria-label="Lines of {title}"></div><p class="hint" role="status"></p>'
    '<div class="view" role="group" aria-label="Chart: {title}"></div><p class="says" aria-live="polite"></p>'
    '<details><summary>Its numbers as a table</summary><div class="numbers"></div></details></div>'
)

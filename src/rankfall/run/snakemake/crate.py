"""Pack a run as an RO-Crate, a ZIP file for a paper's supplement: results, their sources, and the relations between them.

The crate conforms to Workflow Run RO-Crate 0.5 (https://w3id.org/ro/wfrun/workflow/0.5), which builds on RO-Crate 1.1.
"""

import datetime
import hashlib
import json
import mimetypes
import sys
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from rankfall import __version__
from rankfall.disk import atomic
from rankfall.errors import RankfallError
from rankfall.project import SHIPPED
from rankfall.report.tables import about_of
from rankfall.run.snakemake.run_plan import RunPlan, config_text

Entity = dict[str, Any]
CONTEXT = ["https://w3id.org/ro/crate/1.1/context", {"sha256": "https://schema.org/sha256"}]
PROFILES = {  # address -> name, version
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
TYPES = {".parquet": "application/vnd.apache.parquet", ".rst": "text/x-rst"}
# Files beside a module. A job names them by that module, as in lab.squares.rule/statement.yaml.
BESIDE = ("statement.yaml", "published.csv")
OURS = ("rankfall/", "thousandfold/")  # sources in a release of Rankfall


def write_crate(run: RunPlan, target: Path, license_url: str | None, lacking: Mapping[str, str]) -> int:
    """Write the published files of a run, its configuration, workflow and components as a crate. Return the number of files."""
    results = {f"results/{name}": run.results / name for name in run.final if (run.results / name).is_file()}
    if not results:
        raise RankfallError(f"{run.results} has no results of this configuration and code\n  fix: `rankfall run` first")
    rules = sorted((SHIPPED / "workflow" / "rules").glob("*.smk"))
    workflow = {"Snakefile": SHIPPED / "Snakefile", **{f"workflow/rules/{path.name}": path for path in rules}}
    contents = {name: path.read_bytes() for name, path in (results | workflow | find_sources(run)).items()}
    contents["config.json"] = config_text(run.raw).encode() if run.raw else run.config.read_bytes()
    files = {name: describe_file(name, content) for name, content in contents.items()}
    for name in results:
        if name.endswith(".png"):
            files[name]["description"] = contents[name.replace(".png", ".rst")].decode()  # its caption
    software = describe_software(results.values())
    files["Snakefile"] |= {
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "name": "Rankfall",
        "version": __version__,
        "programmingLanguage": {"@id": "#snakemake"},
        "softwareRequirements": refer(entity["@id"] for entity in software),
    }
    action = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": f"rankfall run: {run.about['name']}",
        "instrument": {"@id": "Snakefile"},
        "object": refer(name for name in files if name not in results),
        "result": refer(results),
        "endTime": as_time(max(path.stat().st_mtime for path in results.values())),
        "actionStatus": f"http://schema.org/{'Failed' if lacking else 'Completed'}ActionStatus",
    }
    lacks = "".join(f" Not made: {name}: {reason}" for name, reason in lacking.items())
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Rankfall: {run.about['name']}",
        "description": f"Tables and figures of `{run.about['name']}`, made by Rankfall {__version__}.{lacks}",
        "datePublished": as_time(datetime.datetime.now().timestamp()),
        "license": {"@id": license_url} if license_url else "The authors of this crate state no license.",
        "conformsTo": refer(PROFILES),
        "mainEntity": {"@id": "Snakefile"},
        "mentions": {"@id": "#run"},
        "hasPart": refer(files),
    }
    metadata = {
        "@id": "ro-crate-metadata.json",
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": refer(("https://w3id.org/ro/crate/1.1", list(PROFILES)[-1])),
    }
    snakemake = {"name": "Snakemake", "url": "https://snakemake.github.io"}
    context = [{"@id": "#snakemake", "@type": "ComputerLanguage", **snakemake}]
    works = {url: {"name": name, "version": version} for url, (name, version) in PROFILES.items()}
    works |= {license_url: {"name": license_url}} if license_url else {}
    context += [{"@id": url, "@type": "CreativeWork", **work} for url, work in works.items()]
    graph = [metadata, root, action, *files.values(), *software, *context]
    with atomic(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ro-crate-metadata.json", json.dumps({"@context": CONTEXT, "@graph": graph}, indent=1))
        for name, content in contents.items():
            archive.writestr(name, content)
    return len(files)


def find_sources(run: RunPlan) -> dict[str, Path]:
    """Return name in the crate -> file, for the sources that are no part of Rankfall.

    These are modules of tasks, networks and measures, and the statements of claims and the published numbers beside them."""
    computed = [job for job in run.jobs.values() if job.kind in ("data", "train", "measure")]
    parts = {name.partition("/") for job in computed for name in job.code}
    names = {
        str(Path(*module.split(".")).with_name(file) if file in BESIDE else Path(module, file))
        for module, _, file in parts
    }
    ours = {name for name in names if name.startswith(OURS)}
    paths_by_name = {
        name: [path for root in sys.path if (path := Path(root, name)).is_file()] for name in sorted(names - ours)
    }
    return {f"sources/{name}": paths[0] for name, paths in paths_by_name.items() if paths}


def describe_file(name: str, content: bytes) -> Entity:
    """Describe a file of the crate by its content."""
    kind = TYPES.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "text/plain"
    size, digest = str(len(content)), hashlib.sha256(content).hexdigest()
    return {"@id": name, "@type": "File", "name": name, "encodingFormat": kind, "contentSize": size, "sha256": digest}


def describe_software(results: Iterable[Path]) -> list[Entity]:
    """Describe the software that the tables name in their metadata."""
    tables = [json.loads(about_of(pq.read_schema(path))["versions"]) for path in results if path.suffix == ".parquet"]
    software = {}
    for name, version in {(name, version) for versions in tables for name, version in versions.items() if version}:
        url = "https://www.python.org/" if name == "python" else f"https://pypi.org/project/{name}/{version}/"
        software[url] = {"@id": url, "@type": "SoftwareApplication", "name": name, "version": version, "url": url}
    return [software[url] for url in sorted(software)]


def refer(names: Iterable[str]) -> list[Entity]:
    """Return references to entities."""
    return [{"@id": name} for name in names]


def as_time(moment: float) -> str:
    """Return a time in ISO 8601."""
    return datetime.datetime.fromtimestamp(moment, datetime.UTC).isoformat(timespec="seconds")

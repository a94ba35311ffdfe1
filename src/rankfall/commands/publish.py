"""Copy the tables, figures and page of a run to their published names, as each run does at its end, and pack them for a supplement."""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, required=True, help="the benchmark's config, YAML or JSON")
    parser.add_argument("--results", type=Path, help="folder of results; by default the one that the config names")
    parser.add_argument("--crate", type=Path, metavar="FILE.zip", help="also pack the run as an RO-Crate")
    parser.add_argument(
        "--license", metavar="URL", help="license of the crate, such as https://spdx.org/licenses/CC-BY-4.0"
    )


def run(args: argparse.Namespace) -> int:
    from rankfall.run.config.types import read
    from rankfall.run.plan import make_plan
    from rankfall.run.plan.written import CONFIG
    from rankfall.run.snakemake.publish import explain_lacking, publish
    from rankfall.run.snakemake.run_plan import RunPlan

    plan = RunPlan.load(args.config.parent) if args.config.name == CONFIG else None
    if plan is None:
        raw = read(args.config)
        plan = RunPlan.make(make_plan(raw), raw, args.results)
    names = publish(plan)
    print(f"{plan.results}: {len(names)} files copied" if names else f"{plan.results}: all copies are up to date")
    lacking = explain_lacking(plan)
    if args.crate is not None:
        from rankfall.run.snakemake.crate import write_crate

        print(f"{args.crate}: {write_crate(plan, args.crate, args.license, lacking)} files and ro-crate-metadata.json")
    for name, why in lacking.items():
        print(f"not made: {name}: {why}")
    return 1 if lacking else 0

"""Copy the tables, figures and page of a run to their published names, as each run does at its end, and pack them for a supplement."""

import argparse

ARGUMENTS = """
--config FILE      the benchmark's config, YAML or JSON (required)
--results FOLDER   folder of results; by default the one that the config names
--crate FILE       also pack the run as an RO-Crate, a .zip file
--license URL      license of the crate, such as https://spdx.org/licenses/CC-BY-4.0
"""


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

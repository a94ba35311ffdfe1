"""Make a folder for a project of your own: configuration, an attention, the workflow and a profile for SLURM."""

import argparse

SNAKEFILE = """\
# The workflow of the installed package. `rankfall run` starts it; rules of your own can follow.
from rankfall.project import SNAKEFILE
include: SNAKEFILE
workflow.default_target = "all"
"""
CONFIG = """\
# What is computed. `rankfall plan` lists it, and `rankfall run` computes it.
name: {name}

tasks:
  sorting: {{train: 500, test: 200, length: 8, symbols: 10}}

architectures:
  softmax: {{residual: add, norm: layer, mlp: gelu, heads: 2, width: 32, position: rope}}
  mine: {{base: softmax, attention: {{name: "lab.attention:Capped", cap: 5.0}}}} # the class in lab/attention.py
  alone: {{base: mine, residual: none, norm: none, mlp: none}}

trainings:
  init: {{epochs: 0}}
  short: {{optimizer: adam, lr: 3.0e-3, epochs: 4, batch: 25}}

grid:
  - {{task: sorting, architecture: [softmax, mine, alone], training: [init, short], depth: 4, seed: 0..2}}

measures:
  residuals: {{}}
  law: {{}}
  orders:
    attentions: [multihead, {{name: "lab.attention:Capped", cap: 5.0}}]
    normalisers: [softmax]
    positions: [none, rope]
    masks: [none]
    sentinels: [none]
    heads: [2]
  scorecard: {{}}
figures: {{residuals: {{}}, law: {{}}, scorecard: {{}}}}
"""

ARGUMENTS = """
FOLDER          folder to make
--preset NAME   start from one of the configurations that come along, such as smoke
"""


def run(args: argparse.Namespace) -> int:
    from rankfall.commands.new import write_new
    from rankfall.project import SHIPPED, example, preset_file

    config = CONFIG.format(name=args.folder.absolute().name)
    if args.preset:
        config = preset_file(args.preset).read_text()
    slurm = SHIPPED / "workflow" / "profiles" / "slurm" / "config.yaml"
    files = {
        "Snakefile": SNAKEFILE,
        "config.yaml": config,
        **example("attention").files,
        "workflow/profiles/slurm/config.yaml": slurm.read_text(),
        ".gitignore": "results/\n.snakemake/\n__pycache__/\n",
    }
    write_new(args.folder, files)
    print(f"{args.folder} has {', '.join(files)}")
    print(f"next: cd {args.folder} && rankfall run")
    return 0

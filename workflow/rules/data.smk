# The data sets of a task, one a seed, and what a guess is worth on each.


rule data:
    input:
        inputs("data/{task}"),
    output:
        f"{WORK}/data/{{task}}/{{digest}}.parquet",
    log:
        f"{LOGS}/data/{{task}}/{{digest}}.log",
    priority: 4
    conda:
        "../../envs/environment.yaml"
    params:
        **PLACES,
    shell:
        f"python -m rankfall.cli data {PLANNED} --task {{wildcards.task}} --out {{output:q}} > {{log:q}} 2>&1"

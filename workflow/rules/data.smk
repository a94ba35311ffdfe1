# The data sets of a task, one a seed, and what a guess is worth on each.


rule data:
    output:
        f"{RESULTS}/shards/data/{{task}}.parquet",
    log:
        f"{RESULTS}/logs/data/{{task}}.log",
    priority: 4
    conda:
        "../../envs/environment.yaml"
    params:
        **WIRING.places,
        expect=WIRING.data,
    shell:
        f"python -m rankfall.cli data {PLANNED} --task {{wildcards.task}} --out {{output:q}} > {{log:q}} 2>&1"

# The data sets of a task, one a seed, and what a guess is worth on each.


rule data:
    output:
        f"{RESULTS}/shards/data/{{task}}.parquet",
    log:
        f"{RESULTS}/logs/data/{{task}}.log",
    priority: 2
    conda:
        "../../envs/environment.yaml"
    params:
        *WIRING.data_params(),
        config=CONFIG,
        results=lambda wildcards: RESULTS,
    shell:
        "python -m rankfall.cli data --config {params.config} --results {params.results}"
        " --task {wildcards.task} --out {output} > {log} 2>&1"

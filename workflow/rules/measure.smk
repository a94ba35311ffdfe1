# What is measured on the networks of a shard; again only what the store does not have.


rule measure:
    input:
        cells=f"{RESULTS}/shards/train/{{task}}/{{shard}}.cells.parquet",
    output:
        f"{RESULTS}/shards/measure/{{measure}}/{{task}}/{{shard}}.parquet",
    log:
        f"{RESULTS}/logs/measure/{{measure}}/{{task}}/{{shard}}.log",
    conda:
        "../../envs/environment.yaml"
    threads: config.get("compute", {}).get("threads", 1)
    resources:
        mem_mb=WIRING.measure_memory,
        runtime=WIRING.measure_minutes,
    params:
        *WIRING.measure_params(),
        config=CONFIG,
        results=lambda wildcards: RESULTS,
    shell:
        "exec python -m rankfall.cli measure --config {params.config} --results {params.results}"
        " --measure {wildcards.measure} --task {wildcards.task} --shard {wildcards.shard}"
        " --out {output} > {log} 2>&1"


# A measure that needs no trained cell: of architectures alone, or of tables that others made.
rule measure_freely:
    input:
        WIRING.free_measure_inputs,
    output:
        f"{RESULTS}/shards/measure/{{measure}}.parquet",
    log:
        f"{RESULTS}/logs/measure/{{measure}}.log",
    conda:
        "../../envs/environment.yaml"
    threads: config.get("compute", {}).get("threads", 1)
    params:
        *WIRING.free_measure_params(),
        config=CONFIG,
        results=lambda wildcards: RESULTS,
    shell:
        "exec python -m rankfall.cli measure --config {params.config} --results {params.results}"
        " --measure {wildcards.measure} --tables {params.results}/tables --out {output} > {log} 2>&1"

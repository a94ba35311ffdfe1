# What is measured on the networks of a shard; again only what the store does not have.


rule measure:
    input:
        cells=inputs(WIRING.measure_inputs),
    output:
        f"{RESULTS}/shards/measure/{{measure}}/{{task}}/{{shard}}.parquet",
    log:
        f"{RESULTS}/logs/measure/{{measure}}/{{task}}/{{shard}}.log",
    # Below tables, and the longest first.
    priority: WIRING.measure_priority
    conda:
        "../../envs/environment.yaml"
    threads: WIRING.threads
    resources:
        mem_mb=WIRING.measure_memory,
        runtime=WIRING.measure_minutes,
    params:
        **WIRING.places,
        expect=WIRING.measure,
    shell:
        f"exec python -m rankfall.cli measure {PLANNED} --measure {{wildcards.measure}}"
        " --task {wildcards.task} --shard {wildcards.shard} --out {output:q} > {log:q} 2>&1"


# A measure that needs no trained cell: of architectures alone, or of tables that others made.
rule measure_freely:
    input:
        inputs(WIRING.free_measure_inputs),
    output:
        f"{RESULTS}/shards/measure/{{measure}}.parquet",
    log:
        f"{RESULTS}/logs/measure/{{measure}}.log",
    # Longer than measures of cells: one that is left for the end would run alone.
    priority: 2
    conda:
        "../../envs/environment.yaml"
    threads: WIRING.threads
    params:
        **WIRING.places,
        expect=WIRING.measure_freely,
    shell:
        f"exec python -m rankfall.cli measure {PLANNED} --measure {{wildcards.measure}} --out {{output:q}} > {{log:q}} 2>&1"

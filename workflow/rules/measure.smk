# What is measured on the networks of a shard; again only what the store does not have.


rule measure:
    input:
        inputs("measure/{measure}/{task}/{shard}"),
    output:
        f"{WORK}/measure/{{measure}}/{{task}}/{{shard}}/{{digest}}.parquet",
    log:
        f"{LOGS}/measure/{{measure}}/{{task}}/{{shard}}/{{digest}}.log",
    # Below tables, and the longest first.
    priority: priority("measure/{measure}/{task}/{shard}")
    conda:
        "../../envs/environment.yaml"
    threads: processors("measure/{measure}/{task}/{shard}")
    resources:
        mem_mb=megabytes("measure/{measure}/{task}/{shard}"),
        runtime=minutes("measure/{measure}/{task}/{shard}"),
    params:
        **PLACES,
    shell:
        f"exec python -m rankfall.cli measure {PLANNED} --measure {{wildcards.measure}}"
        " --task {wildcards.task} --shard {wildcards.shard} --out {output:q} > {log:q} 2>&1"


# A measure that needs no trained cell: of architectures alone, or of tables that others made.
rule measure_freely:
    input:
        inputs("measure/{measure}"),
    output:
        f"{WORK}/measure/{{measure}}/{{digest}}.parquet",
    log:
        f"{LOGS}/measure/{{measure}}/{{digest}}.log",
    # Longer than measures of cells: one that is left for the end would run alone.
    priority: 2
    conda:
        "../../envs/environment.yaml"
    threads: RUN.about["threads"]
    params:
        **PLACES,
    shell:
        f"exec python -m rankfall.cli measure {PLANNED} --measure {{wildcards.measure}} --out {{output:q}} > {{log:q}} 2>&1"

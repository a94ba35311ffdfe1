# The cells of a shard, as many at once as fit together. The job trains what the store does not have; its outputs, written
# last, say how each cell ended.


rule train:
    input:
        inputs("train/{task}/{shard}"),
    output:
        cells=f"{WORK}/train/{{task}}/{{shard}}/{{digest}}.cells.parquet",
        training=f"{WORK}/train/{{task}}/{{shard}}/{{digest}}.training.parquet",
    log:
        f"{LOGS}/train/{{task}}/{{shard}}/{{digest}}.log",
    # Above measures and tables, and the longest first.
    priority: priority("train/{task}/{shard}")
    conda:
        "../../envs/environment.yaml"
    threads: processors("train/{task}/{shard}")
    resources:
        **gpus("train", "train/{task}/{shard}"),
        mem_mb=megabytes("train/{task}/{shard}"),
        runtime=minutes("train/{task}/{shard}"),
    params:
        **PLACES,
    shell:
        # `exec`: a signal that goes to all processes of a job (SLURM's warning) must not end the shell, and with it the job,
        # while the program writes its checkpoint.
        f"exec python -m rankfall.cli train {PLANNED} --task {{wildcards.task}} --shard {{wildcards.shard}}"
        " --out {output.cells:q} --training-out {output.training:q} > {log:q} 2>&1"

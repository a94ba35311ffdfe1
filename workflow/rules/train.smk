# The cells of a shard, as many at once as fit together. The job trains what the store does not have; its outputs, written
# last, say how each cell ended.


rule train:
    input:
        # Not `ancient`, though the digest below changes when the data do: Snakemake drops a job's own reasons to run when
        # only ancient inputs of it are made again.
        data=inputs(WIRING.train_inputs),
    output:
        cells=f"{RESULTS}/shards/train/{{task}}/{{shard}}.cells.parquet",
        training=f"{RESULTS}/shards/train/{{task}}/{{shard}}.training.parquet",
    log:
        f"{RESULTS}/logs/train/{{task}}/{{shard}}.log",
    # Above measures and tables, and the longest first.
    priority: WIRING.train_priority
    conda:
        "../../envs/environment.yaml"
    threads: WIRING.threads
    resources:
        mem_mb=WIRING.train_memory,
        runtime=WIRING.train_minutes,
    params:
        **WIRING.places,
        expect=WIRING.train,
    shell:
        # `exec`: a signal that goes to all processes of a job (SLURM's warning) must not end the shell, and with it the job,
        # while the program writes its checkpoint.
        f"exec python -m rankfall.cli train {PLANNED} --task {{wildcards.task}} --shard {{wildcards.shard}}"
        " --out {output.cells:q} --training-out {output.training:q} > {log:q} 2>&1"

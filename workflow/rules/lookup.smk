# The tables of shards whose cells and rows are all in the store: looked up here, in one process. There is such a rule only where
# there are such shards, and only in the process that runs the jobs; they are then no jobs of `train` and `measure`.

if WIRING.lookups:

    rule lookup:
        output:
            WIRING.lookup_outputs,
        log:
            f"{RESULTS}/logs/lookup.log",
        priority: 4  # before training: tables wait for it, and it is short
        conda:
            "../../envs/environment.yaml"
        threads: WIRING.threads
        params:
            **WIRING.places,
            jobs=WIRING.lookup_file,
            expect=WIRING.lookup.digest,
        shell:
            f"exec python -m rankfall.cli lookup {PLANNED} --jobs {{params.jobs:q}} > {{log:q}} 2>&1"

    localrules:
        lookup,

    ruleorder: lookup > train
    ruleorder: lookup > measure

# Tables from the shards, figures from the tables.


rule table:
    input:
        WIRING.table_inputs,
    output:
        f"{RESULTS}/tables/{{table}}.parquet",
    log:
        f"{RESULTS}/logs/table/{{table}}.log",
    conda:
        "../../envs/environment.yaml"
    params:
        *WIRING.table_params(),
        config=CONFIG,
    shell:
        "python -m rankfall.cli table --name {wildcards.table} --config {params.config} --out {output} {input} > {log} 2>&1"


rule figure:
    input:
        WIRING.figure_inputs,
    output:
        picture=report(
            f"{RESULTS}/figures/{{figure}}.png",
            caption="../report/figure.rst",
            category=WIRING.figure_category,
            labels={"figure": "{figure}"},
        ),
        print=f"{RESULTS}/figures/{{figure}}.pdf",
        caption=f"{RESULTS}/figures/{{figure}}.rst",
    log:
        f"{RESULTS}/logs/figure/{{figure}}.log",
    conda:
        "../../envs/environment.yaml"
    params:
        *WIRING.figure_params(),
        config=CONFIG,
        tables=lambda wildcards, input: os.path.dirname(input[0]),
    shell:
        "python -m rankfall.cli figure --config {params.config} --name {wildcards.figure} --tables {params.tables}"
        " --out {output.picture} --caption {output.caption} > {log} 2>&1"

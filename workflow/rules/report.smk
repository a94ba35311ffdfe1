# Tables from the shards, figures from the tables, the page from both.


rule table:
    input:
        inputs(WIRING.table_inputs),
    output:
        f"{RESULTS}/tables/{{table}}.parquet",
    log:
        f"{RESULTS}/logs/table/{{table}}.log",
    # Measures wait for tables. Figures, for which only the page waits, are left for when there is little else to do.
    priority: 2
    conda:
        "../../envs/environment.yaml"
    params:
        **WIRING.places,
        expect=WIRING.table,
    shell:
        # The plan says which files a table is combined from: a command line has no room for thousands.
        f"python -m rankfall.cli table {PLANNED} --name {{wildcards.table}} --out {{output:q}} > {{log:q}} 2>&1"


rule figure:
    input:
        inputs(WIRING.figure_inputs),
    output:
        picture=report(
            f"{RESULTS}/figures/{{figure}}.png",
            caption="../report/figure.rst",
            category=WIRING.figure_category,
            labels={"figure": "{figure}"},
        ),
        others=[f"{RESULTS}/figures/{{figure}}.{kind}" for kind in WIRING.figure_kinds],
        caption=f"{RESULTS}/figures/{{figure}}.rst",
    log:
        f"{RESULTS}/logs/figure/{{figure}}.log",
    conda:
        "../../envs/environment.yaml"
    params:
        **WIRING.places,
        expect=WIRING.figure,
    shell:
        f"python -m rankfall.cli figure {PLANNED} --name {{wildcards.figure}}"
        " --out {output.picture:q} --caption {output.caption:q} > {log:q} 2>&1"


# All numbers of the run in one file that opens from disk.
rule page:
    input:
        inputs(WIRING.page_inputs),
    output:
        f"{RESULTS}/report/index.html",
    log:
        f"{RESULTS}/logs/page.log",
    conda:
        "../../envs/environment.yaml"
    params:
        **WIRING.places,
        expect=WIRING.page,
    shell:
        f"python -m rankfall.cli page {PLANNED} --out {{output:q}} > {{log:q}} 2>&1"

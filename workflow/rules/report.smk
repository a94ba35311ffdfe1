# Tables from the shards, figures from the tables, the page from both.


rule table:
    input:
        inputs("table/{table}"),
    output:
        f"{WORK}/table/{{table}}/{{digest}}.parquet",
    log:
        f"{LOGS}/table/{{table}}/{{digest}}.log",
    # Measures wait for tables. Figures, for which only the page waits, are left for when there is little else to do.
    priority: 2
    conda:
        "../../envs/environment.yaml"
    params:
        **PLACES,
    shell:
        # The plan says which files a table is combined from: a command line has no room for thousands.
        f"python -m rankfall.cli table {PLANNED} --name {{wildcards.table}} --out {{output:q}} > {{log:q}} 2>&1"


rule figure:
    input:
        inputs("figure/{figure}"),
    output:
        picture=report(
            f"{WORK}/figure/{{figure}}/{{digest}}.png",
            caption="../report/figure.rst",
            category=lambda wildcards: RUN.about["categories"][wildcards.figure],
            labels={"figure": "{figure}"},
        ),
        others=[f"{WORK}/figure/{{figure}}/{{digest}}.{kind}" for kind in FORMATS if kind != "png"],
        caption=f"{WORK}/figure/{{figure}}/{{digest}}.rst",
    log:
        f"{LOGS}/figure/{{figure}}/{{digest}}.log",
    conda:
        "../../envs/environment.yaml"
    params:
        **PLACES,
    shell:
        f"python -m rankfall.cli figure {PLANNED} --name {{wildcards.figure}}"
        " --out {output.picture:q} --caption {output.caption:q} > {log:q} 2>&1"


# All numbers of the run in one file that opens from disk.
rule page:
    input:
        inputs("page"),
    output:
        f"{WORK}/page/{{digest}}.html",
    log:
        f"{LOGS}/page/{{digest}}.log",
    conda:
        "../../envs/environment.yaml"
    params:
        **PLACES,
    shell:
        f"python -m rankfall.cli page {PLANNED} --out {{output:q}} > {{log:q}} 2>&1"

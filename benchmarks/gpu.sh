#!/usr/bin/env bash
# Checks and measures training on the GPU of this machine, in less than 8 minutes: bash benchmarks/gpu.sh [--out FOLDER] [--sections NAME ...]
# Needs Python with torch, numpy and pyarrow; no network, no Snakemake. PYTHON says which one, else that of .venv, else python3.
# What is measured is written at once, a Parquet file a section; docs/cluster.md says what is in them.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
export PYTHONPATH=$PWD/src:$PWD PYTHONUNBUFFERED=1
exec timeout --kill-after=2 477 "$python" -m benchmarks.gpu "$@"

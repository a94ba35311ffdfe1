#!/usr/bin/env bash
# Check and measure training on the GPU of this machine in less than 8 minutes: bash benchmarks/gpu.sh [--out FOLDER] [--sections NAME ...]
# Needs Python with torch, numpy and pyarrow: $PYTHON, else that of .venv, else python3. Needs no network and no Snakemake.
# Each section writes a Parquet file as it measures; docs/cluster.md describes them.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
export PYTHONPATH=$PWD/src:$PWD/engine/src:$PWD PYTHONUNBUFFERED=1
exec timeout --kill-after=2 477 "$python" -m benchmarks.gpu "$@"

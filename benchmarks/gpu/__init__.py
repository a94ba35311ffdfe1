"""Checks and measurements of training on a GPU: `bash benchmarks/gpu.sh`."""

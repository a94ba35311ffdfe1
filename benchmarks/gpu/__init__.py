"""Training on a GPU, checked and measured by one command: `bash benchmarks/gpu.sh`."""

"""The engine's speed beside that of its rivals: `python -m benchmarks rivals`, from this folder's parent."""

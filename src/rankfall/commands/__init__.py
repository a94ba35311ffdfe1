"""The verbs of the command line, one per file: each has `ARGUMENTS` and `run(options) -> int`, and imports inside `run`."""

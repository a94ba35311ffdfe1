"""The verbs of the command line, one per file: each has `add_arguments(parser)` and `run(options) -> int`, and imports inside `run`."""

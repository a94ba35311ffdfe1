"""One file a verb: each has `add_arguments(parser)` and `run(options) -> int`, and imports what it needs inside `run`."""

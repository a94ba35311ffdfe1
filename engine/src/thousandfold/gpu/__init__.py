"""Programs on a GPU: each is the text of one kernel, compiled at its first use."""

"""A program on a GPU: the text of one kernel, compiled when it is first needed."""

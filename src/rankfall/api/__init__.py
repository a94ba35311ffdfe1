"""What `from rankfall import ...` gives: the rank study on any attention function, stack of layers or Hugging Face model.

The numbers are those of `rank/` and `models/`; here is only what turns a function or a model into what they are given.
"""

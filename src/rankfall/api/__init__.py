"""The public functions of `from rankfall import ...`: the rank study of any attention function, stack of layers or Hugging Face model.

`rank/` and `models/` compute the numbers; the modules here convert a function or a model into their inputs.
"""

"""Is a model collapsing? What each layer of any module keeps, which part loses it, and what would help, measured on the module itself."""

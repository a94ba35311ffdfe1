QUANTITY = "log10 of the spread of tokens, by layer"

CURVED = "share of a branch's change that its derivative misses, by layers"

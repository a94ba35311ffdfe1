"""Which choices of a design go with what model types keep at initialisation: a regression over the census, with its uncertainty."""

"""The modules from which the machine is compiled. Their text and that of `codes.py` determine the name of its cache folder."""

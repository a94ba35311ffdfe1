"""The comparison of small models with models of the released width: what both keep at initialisation, by model type."""

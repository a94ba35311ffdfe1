"""How near a small model is to one of the released width: what both keep at initialisation, by model type."""

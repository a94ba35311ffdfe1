"""A test of whether a layer norm preserves the affine rank of tokens: Cirrincione 2026."""

"""A test of whether a layer norm leaves the affine rank of tokens as it is: Cirrincione 2026."""

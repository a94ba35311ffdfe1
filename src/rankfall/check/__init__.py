"""Diagnosis of collapse in any module: what each layer keeps, which part loses it, and what would help, measured on the module itself."""

"""The law of rank collapse without a rounding floor, and the theorems' bounds."""

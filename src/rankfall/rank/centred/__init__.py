"""Centred propagation: rows that differ by 1e-1000 pass through a network without losing a digit.

Near identical rows a network loses its floating-point digits in X = 1 x^T + R long before the law of their decay shows: in float64
after four layers of plain attention. So x and R are propagated apart, R as (log of its scale, matrix of order one), and every step
computes the new R by formulas in which what all rows share has cancelled on paper. What remains is relative error of rounding size.
"""

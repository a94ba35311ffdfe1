"""Centred propagation: rows that differ by 1e-1000 pass through a network at full relative precision.

Where the rows of X = 1 x^T + R are nearly identical, float64 rounds R away after about four layers of plain attention, too early to see
how fast R decays. So x and R are propagated separately, R as (log of its scale, matrix of order one). Every step computes the new R by
formulas from which the part common to all rows is removed algebraically, so that only relative errors of the size of rounding remain.
"""

"""A test of whether rotary positions make scores fall with distance, and whether a head needs positions to look at itself: Barbero et al.
2025."""

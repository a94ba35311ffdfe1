"""All studies beside each other: the scorecard, the published numbers, and what dies together."""

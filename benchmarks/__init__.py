"""Speed, measured side by side: `make bench`."""

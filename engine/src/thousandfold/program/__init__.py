"""From a graph of ATen operations to a program of the machine: layouts, fusion, memory, encoding."""

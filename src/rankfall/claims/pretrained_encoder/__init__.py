"""Tests on the states and attention of a pretrained encoder: rank, cosines, sinks and spikes, layer by layer."""

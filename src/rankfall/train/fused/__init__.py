"""A training step of standard networks by hand: embedding, blocks, head, loss, backward, clip and optimiser, one network a core.

All that a step of one network makes stays in the processor's cache. Gradients are those of the plain engine (autograd) up to the rounding
of float32; masks of dropout are the same bits. Which networks are served: `run/plan/engines.py`. How arrays lie in memory: `tile.py`.
"""

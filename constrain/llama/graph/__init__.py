"""Choices inside llama.cpp's graph: where the logits are computed, for GPUs, without copying them to main memory.

``mask_sampler`` is a sampler of llama.cpp that adds a mask (read it first); ``sampling`` attaches it, with the other
samplers of an answer, to a context.
"""

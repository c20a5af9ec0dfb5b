"""Decoding: one answer, from its first token to its end.

``answer`` decides which tokens an answer takes and when it ends (read first); ``sampler`` is llama.cpp's chain, by
which one of the allowed tokens is chosen, with its numbers in their ``ranges``; ``logprobs`` notes the probabilities,
each a ``token_logprob``. ``decode`` is the loop of a single sequence, which ``generation.generate`` runs;
``scheduling`` has the loop of several.
"""

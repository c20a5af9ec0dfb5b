"""Weights: the formats of a model's tensors, what they cost on this machine, and faster copies of a model.

``tensors`` reads from a file which tensors it has and in which formats; ``ggml`` has the functions of llama.cpp's
library below it. ``products`` times matrix products by format, ``costs`` the evaluation of several tokens.
``inspection`` joins these into the report of ``constrain check --model``. ``preparing`` makes a copy in faster formats:
``quantizer`` calls llama.cpp's own, ``importance`` weights its rounding errors by the activations of ``texts``, and
``comparison`` tells how far the copy is from the original. Read ``tensors`` first.
"""

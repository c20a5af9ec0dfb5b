"""Weights: the formats of a model's tensors, what they cost on this machine, and faster copies of a model.

``tensors`` reads from a file which tensors it has and in which formats; ``ggml`` has the functions of llama.cpp's
library below it. ``products`` times matrix products by format, ``layouts`` checks llama.cpp's own layouts, ``costs``
the evaluation of several tokens. ``inspection`` joins these into the report of ``constrain check --model``.
``preparing`` searches a copy in faster formats: ``plan`` says which formats are faster, ``quantizer`` calls llama.cpp's
own, ``importance`` weights its rounding errors by the activations of ``texts`` (read by ``evaluating``), and
``comparison`` tells how far the copy is from the original. ``copies`` keeps what was found. Read ``tensors`` first.
"""

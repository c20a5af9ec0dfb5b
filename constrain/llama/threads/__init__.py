"""Threads: cores that llama.cpp may compute with, and work done beside it.

``threads`` sets the number of a context's threads, from what ``cores`` says other programs leave. ``openmp`` sends
GNU OpenMP's workers away after use. ``preparing`` computes masks in a second thread while llama.cpp computes.
``contexts``, ``decoding`` and ``scheduling`` are the callers.
"""

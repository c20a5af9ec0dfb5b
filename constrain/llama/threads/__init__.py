"""Threads: the cores that llama.cpp may use, and work in parallel with llama.cpp.

``counts`` says how many threads to use by default; ``threads`` sets a context's number of them; ``cores`` measures how
many cores other programs leave free. ``openmp`` ends GNU OpenMP's workers after use. ``preparing`` computes masks in a
second thread while llama.cpp computes. ``contexts``, ``decoding`` and ``scheduling`` are the callers.
"""

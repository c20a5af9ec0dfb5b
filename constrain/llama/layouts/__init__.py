"""Layouts: whether llama.cpp's own layouts of weights compute rightly on this processor.

``loading`` asks ``check``, whose child process multiplies with ``products``.
"""

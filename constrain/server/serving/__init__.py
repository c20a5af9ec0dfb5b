"""Serving: models, and answers written by them.

Every endpoint calls ``answering`` or ``endpoint``: from the body of a request to its response or stream. ``generation``
prepares requests in threads next to the event loop, and writes answers on a model's scheduler. ``models`` loads and
unloads models; ``model_files`` checks their files, and their masks with a canary. ``prefill`` cuts the given beginning
from an answer, ``sizes`` and ``waiting`` are helpers, ``extension`` writes the member ``constrain`` of responses,
``metrics`` counts.
"""

"""Serving: models, and answers written by them.

``dialect`` is the seam to the folders of the dialects, which ``server.dialects`` lists. Every endpoint of theirs calls
``answering`` or ``endpoint``: from the body of a request to its response or stream. ``embedding`` answers with vectors,
and ``ended`` has facts of finished answers, for all dialects.

``generation`` prepares requests in threads next to the event loop, and writes answers on a model's scheduler.
``models`` loads and unloads models; ``model_files`` checks their files, and their masks with a canary; ``facts`` reads
what files say about a model. ``prefill`` cuts the given beginning from an answer, ``progress`` says how much of a
prompt is read, ``sizes`` and ``waiting`` are helpers, ``extension`` writes the member ``constrain`` of responses,
``metrics`` counts.
"""

"""The prompt cache: beginnings of prompts, evaluated by an earlier process, in files that later processes map.

``prompts`` is what a context asks: which beginning is there, and what to keep. ``folder`` has the folder of one user
with its bound in bytes, ``files`` the format of a file and its checks, ``identity`` the facts about model, context and
build on which an evaluation depends. ``contexts`` and ``Model`` are the callers. Read ``prompts`` first.
"""

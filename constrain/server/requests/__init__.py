"""Requests: bodies, and the fields that several endpoints read.

The ``request`` modules of ``chat``, ``responses`` and ``completions`` call this package. Read ``fields`` first (types
and ranges, and OpenAI's words for what is wrong), then ``body`` (JSON within a limit) and ``refusals`` (fields that are
not read). ``places`` are the parts that are compiled. ``formats``, ``tools`` with ``functions``, ``logprobs`` and
``texts`` read one field each.
"""

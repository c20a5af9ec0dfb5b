"""Requests: bodies, and the fields that several endpoints read.

The ``request`` modules of ``chat``, ``responses``, ``completions`` and ``embeddings`` call this package. Each field has
one reader, which receives the field's place, so that its errors name it. Read ``fields`` first (types and ranges, and
OpenAI's words for errors), then ``limits``, ``places``, ``body`` (JSON of limited size) and ``refusals`` (known fields
that are refused). The readers are ``messages``, ``texts``, ``tools`` with ``functions``, ``formats``, ``sampling``,
``logprobs`` and ``streams``. ``question`` is the result: the question to a model.
"""

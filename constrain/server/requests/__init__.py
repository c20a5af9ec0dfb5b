"""Requests: bodies, and the fields that several endpoints read.

The ``request`` modules of ``chat``, ``responses``, ``completions`` and ``embeddings`` call this package. Each field has
one reader, which is handed where the field stands, so that its errors name that place. Read ``fields`` first (types and
ranges, and OpenAI's words for what is wrong), then ``limits``, ``places``, ``body`` (JSON within a limit) and
``refusals`` (fields that are not read). The readers are ``messages``, ``texts``, ``tools`` with ``functions``,
``formats``, ``sampling``, ``logprobs`` and ``streams``. ``question`` is what a model is asked in the end.
"""

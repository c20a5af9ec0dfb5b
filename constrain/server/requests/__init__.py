"""Requests: bodies, and the fields that several endpoints read.

The ``request`` modules of ``chat``, ``responses``, ``completions`` and ``embeddings`` call this package. Each field has
one reader, which receives the field's place, so that its errors name it. Readers that lines of a batch share are in
``constrain.fields``. They raise a ``FieldError`` or an ``ApiError``; the ``request`` modules raise ``ApiError`` only.

Read ``body`` first (JSON of limited size), then ``limits``, ``places`` and ``refusals`` (fields that are refused). The
readers are ``messages``, ``texts``, ``tools`` with ``functions``, ``formats`` with ``structural`` (XGrammar's tags),
``peers`` (fields of other servers), and ``streams``; ``pages`` reads the query of a list.
``question`` is the result: the question to a model.
"""

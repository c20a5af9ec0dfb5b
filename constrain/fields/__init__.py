"""Fields of JSON objects that hold options: each is declared once, for requests to the server and lines of a batch.

An object is a class of ``declared.Fields``, a Pydantic model: it reads the fields, names their places in errors
(``FieldError``), and describes them. Read ``values`` first (types and ranges, and OpenAI's words for errors) and
``declared``, then the fields that several objects share: ``sampling``, ``thinking``, ``logprobs`` and ``votes``.
"""

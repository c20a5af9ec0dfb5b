"""Requests: bodies, and the fields that several endpoints read.

Each body is a class of ``declared.Body``, in the ``request`` module of its endpoint: its fields are read, and described
in ``openapi``, as they are declared there. Fields that lines of a batch share are in ``constrain.fields``. Readers of
fields receive the field's place, so that their errors name it. They raise a ``FieldError`` or an ``ApiError``, and
``Body.ask`` raises ``ApiError`` only.

Read ``body`` first (JSON of limited size), then ``limits``, ``places``, ``refusals`` (fields that are refused) and
``declared``. Readers and fields that several bodies share are in ``messages``, ``texts``, ``tools``, ``formats``,
``peers`` (fields of other servers), and ``streams``. ``question`` is the result: the
question to a model.
"""

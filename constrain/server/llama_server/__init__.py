"""llama-server's own endpoints: ``/completion``, ``/infill``, ``/tokenize`` and others, and LM Studio's list of models.

``app`` calls ``routes``: read it first. ``request`` reads the bodies, ``tokens`` makes the tokens of a prompt, and
``writer`` writes answers; ``endpoint`` joins them to a model. ``about`` describes the server and its models.
"""

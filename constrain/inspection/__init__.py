"""Inspection: checks of a schema and explanations of a text, without a model.

``explain`` is public, in ``explanation``: it finds where a text stops matching and what could go on there, in terms of
``characters``. ``check`` serves ``constrain check``: findings, sizes, and the number of tokens that answers take.
``Matcher.explain``, in ``engine.constraint``, says why a decode loop may not take one token.
"""

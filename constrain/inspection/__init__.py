"""Inspection: what can be said of a schema or a text without a model.

``explain`` is public, and in ``explanation``: where a text stops matching, and what could have stood there; it says
so with ``characters``. ``check`` is behind ``constrain check``: findings, sizes, and how many tokens answers take.
Why a single token is refused in a decode loop is ``Matcher.explain``, in ``engine.constraint``.
"""

"""Lint: advice to the author of a schema.

``inspection.check`` and ``server`` call ``linter``, which gathers ``findings``: refused or ignored keywords, parts that
no value can use (``unsatisfiable``), and ``advice`` for better answers. Read ``findings`` first.
"""

"""Lint: what the author of a schema should know.

``inspection.check`` and ``server`` call ``linter``, which gathers ``findings``: keywords that are refused or ignored,
parts that no value can ever use (``unsatisfiable``), and ``advice`` on schemas that compile and give worse answers
than they could. Read ``findings`` first.
"""

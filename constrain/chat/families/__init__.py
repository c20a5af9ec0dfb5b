"""Families: the forms in which model families write calls and reasoning.

Read ``format`` first: the record of a family, a ``ToolFormat``. ``forms`` has the records, and detects the family of a
chat template. ``prompt``, ``answers`` and ``reading`` work with any ``ToolFormat`` and know no family by name.

To add a family, follow CONTRIBUTING.md, "Add a model family". A new ``ArgumentStyle`` also needs an ``ArgumentForm`` in
``json_schema.emission.arguments``, and an entry in ``answers.arguments``, ``reading.reader``, ``prompt.shaping`` and
``prompt.abilities``.
"""

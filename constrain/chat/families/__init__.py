"""Families: the forms in which model families write calls and reasoning.

Read ``format`` first: the parts of a form. ``forms`` lists the families and detects the family of a chat template.
``prompt``, ``answers`` and ``reading`` work with any ``ToolFormat`` and know no family by name.

To add a family: a ``ToolFormat`` and an entry of ``_FAMILIES`` in ``forms`` (for reasoning: ``_THINKING``), a template
in tests/data/chat, and its name in tests/support/chat/templates.py. A new ``ArgumentStyle`` also needs a reader in
``answers.arguments``, ``reading.reader``, ``prompt.shaping`` and ``prompt.abilities``.
"""

"""Families: the forms in which model families write calls and reasoning.

``format`` is what a form is made of, read first. ``forms`` lists the families and finds the one of a chat template.
``prompt``, ``answers`` and ``reading`` work with any ``ToolFormat`` and know no family by name.

A new family: a ``ToolFormat`` and an entry of ``_FAMILIES`` in ``forms`` (reasoning: ``_THINKING``), a template in
tests/data/chat, and its name in tests/support/chat/templates.py. A new ``ArgumentStyle`` is also read in
``answers.arguments``, ``reading.reader``, ``prompt.shaping`` and ``prompt.abilities``.
"""

"""OpenAI's strict subset of JSON Schema.

``strict_schema`` converts to it and ``check_strict`` lists what breaks it: both are public, and in ``subset``.
``chat.tools`` and ``server`` call them, too. Read ``checks`` for the rules, ``limits`` for the sizes, ``conversion``
for the way into the subset, and ``merging`` for two schema objects that become one.
"""

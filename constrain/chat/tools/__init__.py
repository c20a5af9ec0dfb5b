"""Tools: functions that a model may call, and their calls.

``tool`` (in ``definition``) makes a tool of a function: its ``annotations``, ``parameters``, ``docstrings`` and
``signatures`` (with ``variadic``) become a schema, and ``checks`` sees to it that nothing fails later. ``kinds`` has
the classes of tools, read first; ``calls`` a tool with ``arguments``, and ``running`` runs it. ``openai`` reads and
writes OpenAI's JSON.
"""

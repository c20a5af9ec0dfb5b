"""Tools: functions that a model may call, and their calls.

Read ``kinds`` first: the classes of tools. ``tool`` (in ``definition``) makes a tool from a function: its
``annotations``, ``parameters``, ``docstrings`` and ``signatures`` (with ``variadic``) become a schema, and ``checks``
reports at once all errors that would otherwise appear in a call; ``compiled`` keeps the grammars that it makes for the
answers. ``calls`` combines a tool with ``arguments``, and
``running`` runs it. ``openai`` reads and writes OpenAI's JSON.
"""

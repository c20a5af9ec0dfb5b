"""Emission: shapes to rules and automata of a ``Grammar``.

``compiler`` calls ``emitter``, which makes one rule for each goal with arrays or objects. Read ``emitter`` first, then
``scalars`` (terminals), with ``string_spellings`` for ``escapes="any"``.
``arrays``, ``objects`` and ``unordered_objects`` are the automata of plain shapes; ``combined``, ``independent_keys``
and ``remembered_members`` those of formulas; all of them call the emitter by its interface in ``emitting``.
``arguments`` holds the forms in which model families write the arguments of a call; in one of them, arguments are
``elements``, of which ``element_emission`` makes the rules.
"""

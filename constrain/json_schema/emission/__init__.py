"""Emission: shapes to rules and automata of a grammar.

``compiler`` calls ``emitter``, whose base in the kernel (``kernel/binding/emission.cpp``) makes one rule for each goal
with arrays or objects, and itself the automata of plain shapes. Read both first, then ``scalars`` (terminals), with
``string_spellings`` for ``escapes="any"``.
``unordered_objects`` are the automata of objects with keys in any order; ``combined``, ``independent_keys`` and
``remembered_members`` those of formulas; all of them call the emitter by its interface in ``emitting``. ``emitted`` is
the result. ``arguments`` holds the forms in which model families write the arguments of a call: ``outermost_emission``
makes the rules of the outermost object; in one form, arguments are ``elements``, with the rules of
``element_emission``.
"""

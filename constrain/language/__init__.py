"""Languages: grammars, which all front ends make, and the caller's schemas and policies.

A front end (``json_schema``, ``lark``, ``regex``, ``composition``, ``structural``, ``chat.answers``) makes a
``Grammar``; ``engine`` compiles it. Read ``tree`` first (expressions: what front ends read texts into), then
``grammar`` (terminals and rules) and ``source`` (objects that stand for a grammar where a schema may stand).
``merging`` puts a grammar together, ``rule_automaton`` a rule; ``emptiness``, ``iteration``, ``special`` and ``digest``
ask about grammars. ``stages`` are the grammars of a language in which values depend on others. ``schema_text``,
``policies`` and ``result`` handle the caller's arguments: the text of a schema (``short_schema``: in one line;
``wrong_schema``: messages about what is none), the policies of its compilation, and the type of its answers.
"""

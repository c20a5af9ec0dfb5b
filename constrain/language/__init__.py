"""Languages: what all front ends make, and what all else is told of a schema or grammar.

A front end (``json_schema``, ``lark``, ``regex``, ``composition``, ``chat.answers``) makes a ``Grammar``; ``engine``
compiles it. Read ``tree`` first (expressions, what terminals are made of), then ``grammar`` (terminals and rules) and
``source`` (objects that stand for a grammar where a schema may stand). ``rule_automaton`` builds a rule; ``merging``,
``emptiness``, ``special`` and ``digest`` work on grammars. ``schema_text``, ``policies``, ``hint`` and ``result`` are
about what callers write: the text of a schema, how it is compiled, what the prompt shows of it, and what its answer is
read as.
"""

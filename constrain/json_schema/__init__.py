"""JSON Schema to grammar.

``compile_schema`` (in ``compiler``) is the one entrance; ``engine``, ``composition``, ``lark`` and ``chat`` call it.
``language.policies`` holds the caller's choices. A schema location becomes a *goal*, a goal becomes a disjunction of
*shapes* (one JSON type each), and shapes become the automata of rules. Read the packages in this order:

- ``documents``: the schema that a place or reference means (``dialects``: its draft); ``keywords``: its meaning, one
  record for each keyword
- ``shapes``: the allowed values, with ``numbers``; ``formulas``: ``and``, ``or`` and ``not`` over shapes
- ``values``: existence and number of values; ``emission``: shapes to rules
- ``formats`` and ``spelling``: the texts of formats and strings
- ``stages``: keywords whose value is another field of the answer
- ``strict``: OpenAI's subset; ``lint``: advice to authors; ``hint``: the text that shows a schema to the model
"""

"""JSON Schema to grammar.

``compile_schema`` (in ``compiler``) is the one entrance; ``engine``, ``composition``, ``lark`` and ``chat`` call it.
``policies`` holds what a caller chooses.
A schema location becomes a *goal*, a goal a disjunction of *shapes* (one JSON type each), shapes the automata of
rules. Read the packages in this order:

- ``documents``: which schema is meant (``dialects``: which draft, also where none is named); ``keywords``: what it
  says, one function for each keyword
- ``shapes``: what a value may be; ``formulas``: ``and``, ``or`` and ``not`` over shapes
- ``values``: which values exist, and how many; ``emission``: shapes to rules
- ``formats`` and ``spelling``: the texts of formats, numbers and strings
- ``strict``: OpenAI's subset; ``lint``: what an author should know
"""

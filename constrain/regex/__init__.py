"""Regular expressions: patterns of three dialects, read into the trees of ``language.tree``.

``Regex`` (in ``source``) is the public entrance; ``json_schema``, ``lark`` and ``chat`` call ``parsing.parser``.
Read ``source`` first, then ``parsing``. ``anchors`` and ``lookaround`` eliminate what a tree has no node for.
``classes`` and ``unicode`` are sets of characters, ``builders`` a short way to write trees. ``decimals`` and
``scientific`` make expressions of number ranges; ``spelling`` and ``string_spellings`` those of JSON strings.
"""

r"""Regular expressions: patterns of three dialects, read into the trees of ``language.tree``.

``Regex`` (in ``source``) is the public entrance; ``json_schema``, ``lark`` and ``chat`` call ``parsing.parser``. Read
``source`` first, then ``parsing``. ``anchors`` and ``lookaround`` eliminate assertions, for which trees have no node.
``classes`` is arithmetic on sets of characters, ``unicode`` knows the sets of ``\p{...}`` and ``\w``, ``builders`` is a
short way to write trees. ``named_groups`` finds the texts of groups, ``free_text`` makes those of texts without some
marks; ``spelling`` and ``string_spellings`` make those of JSON strings.
"""

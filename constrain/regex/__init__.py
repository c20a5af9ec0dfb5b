r"""Regular expressions: patterns of three dialects, read into the trees of ``language.tree``.

``Regex`` (in ``source``) is the public entrance; ``json_schema``, ``lark`` and ``chat`` call ``parsing.parser``. Read
``source`` first, then ``parsing``. ``anchors`` and ``lookaround`` eliminate what a tree has no node for. ``classes`` is
arithmetic on sets of characters, ``unicode`` knows the sets of ``\p{...}`` and ``\w``, ``builders`` a short way to
write trees. ``decimals`` and ``scientific`` make expressions of number ranges; ``spelling`` and ``string_spellings``
those of JSON strings.
"""

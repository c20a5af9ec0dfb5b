"""Slow judges that share nothing with the kernel but the data they read: what is a text of a language, and what next?

``kernel`` reads grammars and ``lark`` the text of Lark grammars, with lexemes as ``expressions`` has them; ``search``
turns both into masks. ``schemas`` lists all valid texts of small schemas. Each folder has the generator of its cases.
"""

"""Grammar texts as data: the syntax of Lark and of llguidance's dialect, with the place of each part.

Read ``syntax`` first (the data), then ``reader``. ``scanning`` finds what the parser does not know: JSON, grammars
inside the grammar, special tokens. ``calls`` reads values of parametric rules and conditions on them, ``rule_options``
what stands in brackets behind the name of a rule, ``settings`` reads ``%llguidance``, ``strings`` the texts of strings.
The ``lark`` package makes ``parser`` from dialect.lark, with its tables kept in tables.json. ``places`` has lines and
columns for errors, ``failures`` the words for texts that no parser reads.
"""

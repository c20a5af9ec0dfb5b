"""Grammar texts as data: the syntax of Lark and of llguidance's dialect, with the place of each part.

Read ``syntax`` first (the data), then ``reader``. The ``lark`` package makes ``parser`` from dialect.lark, with its
tables kept in ``tables``. ``places`` has lines and columns for errors, ``failures`` the
words for texts that no parser reads.
"""

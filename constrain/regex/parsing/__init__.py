"""Pattern text to expression trees: ECMA-262, Python's ``re`` and Rust's ``regex`` crate.

Every module with a pattern calls ``parser``. It reads the text in one pass, with a stack of its own, and leaves
classes in brackets to ``brackets``, backslashes to ``escapes`` and opening parentheses to ``groups``. All of
them share the place in the text that ``scanner`` keeps. Read ``scanner`` first, ``parser`` last.
"""

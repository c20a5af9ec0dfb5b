"""Tables: values of strings, up to millions, as a language that a model writes.

``json_schema`` compiles the keyword ``x-one-of`` with this package. Read ``table`` first: it reads values, and finds
tables again by the digests that stand in schemas. ``keyword`` reads the keyword. ``annotation`` is ``constrain.OneOf``,
which writes it.
"""

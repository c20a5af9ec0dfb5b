"""Tables: values of strings, numbers and booleans, up to millions, as a language that a model writes.

``json_schema`` compiles the keyword ``x-one-of`` with this package. Read ``columns`` first: it reads the values of one
column, and finds columns again by the digests that stand in schemas; ``numbers`` has those that are numbers. ``table``
is ``constrain.Table``, whose columns ``readers`` read from databases and files; ``dependent`` has values of a column by
those of others. ``keyword`` reads the keyword and binds the tables that it names. ``annotation`` is
``constrain.OneOf``, which writes it.
"""

"""Fields that depend on others: keywords whose value is ``{"$data": POINTER}``, as Ajv reads them, and ``x-unique-by``.

``compiler`` calls ``stages.read_stages``. Read ``pointers`` first, then ``places`` (the part of a schema that depends
on other fields, as a tree), ``bounds`` (one such keyword), ``unique`` (items that differ in a member), ``resolution``
(finds the fields that are pointed at), ``ranges`` and ``projection`` (values of a field for which something is left for
the later ones), ``rendering`` (the schema for the values that are known), ``reader`` (finds the values in a text) and
``stages`` (all of it together).
"""

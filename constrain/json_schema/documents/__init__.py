"""Documents: the schema that a place or a reference means.

``compiler``, ``keywords``, ``lint`` and ``strict`` call ``references``, the entrance. Read ``dialects`` first (the
drafts) and ``keyword`` (the record of a keyword, and tables of all of them), then ``subschemas`` (the places of schemas
in a schema), ``documents`` (the caller's registry), ``vocabularies`` (custom metaschemas), ``sources`` (schemas with a
base URI of their own), ``locations`` (of subschemas) and ``references``. ``dynamic_scope`` is for ``$dynamicRef`` and
``$recursiveRef`` only; ``required_keys`` finds required keys that seem misspelt.
"""

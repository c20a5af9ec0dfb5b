"""Documents: the schema that a place or a reference means.

``compiler``, ``keywords``, ``lint`` and ``strict`` call ``references``, the entrance. Read ``dialects`` first (the
drafts, and the places of subschemas in each), then ``documents`` (the caller's registry), ``sources`` (schemas with a
base URI of their own), ``locations`` (of subschemas) and ``references``. ``dynamic_scope`` is for ``$dynamicRef`` and
``$recursiveRef`` only; ``subschemas`` walks over the subschemas of an object for ``lint``; ``keyword_sets`` names sets
of keywords, ``required_keys`` finds those that seem misspelt.
"""

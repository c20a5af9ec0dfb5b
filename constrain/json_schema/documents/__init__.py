"""Documents: which schema a place or a reference means.

``compiler``, ``keywords``, ``lint`` and ``strict`` ask ``references``, the entrance. Read ``dialects`` first (the
drafts, and where each has subschemas), then ``documents`` (the caller's registry), ``sources`` (schemas with a base
URI of their own), ``locations`` (of subschemas) and ``references``. ``dynamic_scope`` is for ``$dynamicRef`` and
``$recursiveRef`` alone; ``subschemas`` walks over the subschemas of an object for ``lint``; ``keyword_sets`` names sets
of keywords.
"""

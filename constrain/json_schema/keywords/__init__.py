"""Keywords: the meaning of a schema object.

A keyword is one record (``documents.keyword.Keyword``) beside its function. ``table`` collects all records; it is what
others import. ``expansion`` makes goals, expands them into shapes, and is the working memory of one compilation. The
function of a keyword adds to ``assertions``, and ``asserted`` turns these into shapes. Read ``strings`` first, then
``assertions``. Keywords about one type are in ``numeric``, ``strings``, ``arrays`` and ``objects``; those about the
value as a whole in ``combinators`` and ``conditionals``; those that restrict no value in ``names``. ``unevaluated``
follows the members that schemas evaluate, ``joining`` joins two values of a keyword, and ``unknown`` warns of keywords
that a draft does not have.
"""

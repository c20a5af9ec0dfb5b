"""Keywords: the meaning of a schema object.

``expansion`` makes goals, expands them into shapes, and is the working memory of one compilation. It finds the function
of a keyword in ``table``; the function adds to ``assertions``, and ``asserted`` turns these into shapes. Read
``table`` first, then ``assertions``. Keywords about one type are in ``numeric``, ``strings``, ``quotes``, ``arrays``
and ``objects``; those about the value as a whole in ``combinators``, ``conditionals``, ``contains``, ``format`` and
``unevaluated``. ``unknown`` warns of keywords that a draft does not have.
"""

"""Keywords: what a schema object says.

``expansion`` makes goals and expands them into shapes, and is the working memory of one compilation. It looks a keyword
up in ``table`` and calls its function, which adds to ``assertions``; ``asserted`` turns them into shapes. Read
``table`` first, then ``assertions``. Keywords about one type are in ``numeric``, ``strings``, ``arrays`` and
``objects``; those about the value as a whole in ``combinators``, ``conditionals``, ``contains``, ``format`` and
``unevaluated``. ``unknown`` warns of keywords that a draft does not have.
"""

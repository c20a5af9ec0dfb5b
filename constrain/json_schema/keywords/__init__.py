"""Keywords: what a schema object says.

``shapes.goals`` looks a keyword up in ``table`` and calls its function, which adds to ``assertions``. Read ``table``
first, then ``assertions``. Keywords of one type are beside that type's shape (``shapes.strings``, ``shapes.numeric``,
``shapes.arrays``, ``shapes.objects``). Here are those of the value as a whole: ``combinators``, ``conditionals``,
``contains``, ``format`` and ``unevaluated``; ``unknown`` warns of keywords that a draft does not have.
"""

from __future__ import annotations

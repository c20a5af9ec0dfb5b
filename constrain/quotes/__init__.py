"""Quotes: strings that are verbatim pieces of given texts, and where they stand in these texts.

``json_schema`` compiles the keyword ``x-quote`` with this package, and ``generation`` reports the places of quotes.
Read ``keyword`` first: it reads the keyword and the sources that it names. ``texts`` makes the expression of all quotes
of a source, and folds texts. ``annotation`` is ``constrain.Quote``, which writes the keyword. ``places`` finds the
quotes of a finished answer.
"""

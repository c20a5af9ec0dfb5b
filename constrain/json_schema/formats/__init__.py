"""Formats: the texts of the keyword ``format``.

``keywords.format`` asks ``expressions`` by name. ``definitions`` is what a format allows by its definition, where
``expressions`` keeps to less, for negation; ``generated`` is what is written in generation, where readers take less
than the format allows. ``hosts`` has the names and addresses that several formats are made of, ``idn`` the
internationalized ones. Read ``expressions`` first.
"""

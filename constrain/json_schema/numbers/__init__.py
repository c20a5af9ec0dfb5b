"""Numbers: what a schema says of a number, and the texts of such numbers, in exact arithmetic.

``keywords`` and ``formulas`` combine the shapes of numbers, ``emission`` asks for their texts. Read ``shape`` first:
bounds, divisors, exclusions. ``cells`` are the decimals that read as one IEEE double. ``spellings`` gives the texts of
a shape: all of them, or the ``canonical`` ones, without ``exclusions``. ``decimals`` makes intervals digit by digit,
``scientific`` those with exponents. ``doubles`` narrows a shape so that readings as decimals and as doubles agree.
"""

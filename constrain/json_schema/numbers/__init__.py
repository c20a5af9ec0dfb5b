"""Numbers: what a schema says of a number, and the texts of such numbers, in exact arithmetic.

``shapes`` holds the shape of numbers, ``keywords`` and ``formulas`` combine it, ``emission`` asks for its texts. Read
``shape`` first: bounds, divisors, exclusions. ``cells`` are the decimals that read as one IEEE double, and ``doubles``
narrows a shape so that both readings agree. ``canonical`` gives the one spelling of a shape's numbers, ``every`` all
JSON spellings. These are made of intervals and multiples: ``plain`` without exponents, ``scientific`` with them, both
by comparing ``decimals`` digit by digit.
"""

"""Objects with keys in any order, whose formulas are tested against the members read so far.

``formulas.objects`` calls this package if an automaton of remaining questions would have too many states;
``emission.remembered_members`` writes its rules. Read ``members`` first (the memory of members read), then
``questions`` (tests of the memory) and ``viability`` (members that may still come).
"""

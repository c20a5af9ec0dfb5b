"""Objects with keys in any order, whose formulas are tested against what was read.

``formulas.objects`` turns to this package where an automaton over what is left would have too many states;
``emission.remembered_members`` writes its rules. Read ``members`` first (what is remembered), then ``questions`` (what
the memory is asked) and ``viability`` (which members may still come).
"""

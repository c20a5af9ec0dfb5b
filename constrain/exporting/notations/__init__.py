"""The notations that grammars are exported to.

``gbnf`` writes the grammars of llama.cpp, ``lark`` those of llguidance and of this package; ``regex`` makes one pattern
of all rules. They share ``spelling`` (characters, classes and counts) and ``names`` (of rules).
"""

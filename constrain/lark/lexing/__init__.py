"""Lexing of Lark and GBNF grammars: ignored text between lexemes, and terminals that the longest match would misread.

Read ``gaps`` first: it reads ``%ignore``. ``separation`` puts ignored text between the lexemes of a grammar.
``splitting`` turns terminals whose longest match could lead into a dead end into rules over bytes.
"""

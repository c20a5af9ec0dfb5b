"""The compiler, checked by others: a compiled grammar against its source, on small values.

``check`` compares (read it first): ``acceptor`` asks the grammar and no engine, ``values`` draws values of a schema
(``patterns`` has samples of patterns, ``spelling`` the texts), ``validators`` judges them; ``strings`` does all that
for patterns and Lark grammars.
"""

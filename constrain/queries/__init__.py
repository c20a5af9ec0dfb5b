"""SQL over a database: a grammar of the queries that run on it, made of its tables, columns, types and foreign keys.

Read ``source`` first (the public function ``sql``), then in the order of the work: ``reading`` reads a database,
``kinds`` what its types allow, ``schema`` keeps what a caller permits, ``names`` spells names. ``scopes`` finds the
tables that a query may join, ``automata`` writes rules, ``expressions`` those of each table, ``conditions`` those of
WHERE and ``statements`` the rest. ``needed`` finds the tables of a large database that a prompt shows, and ``served``
has the databases of a server's operator.
"""

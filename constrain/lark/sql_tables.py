"""SQL over known tables: a Lark grammar in which the names of tables and columns are the only identifiers.

A scope is a set of tables with rules of its own: each table, each two of up to five tables, and all together. So a
query over one table has no column of another, nor has a query over two of five. Other joins may have columns of all
tables. There are no aliases, since a query could then use a name that no table has; so no FROM names a table twice.
``constrain.grammars.load`` calls ``over_tables``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from math import comb
from string import Template
from typing import TYPE_CHECKING

from constrain.errors import GrammarError

if TYPE_CHECKING:
    from collections.abc import Iterable

_SCOPE = Template("""
query_$n: _select_$n item_$n (_COMMA item_$n)* _rest_$n
value_$n: _select_$n any_condition_$n _rest_$n
_select_$n: SELECT [DISTINCT | ALL]
_rest_$n: _W FROM ($source) [_W WHERE condition_$n] [_W group_$n | _W order_$n] [_W limit]
group_$n: GROUP BY term_$n (_COMMA term_$n)* [_W HAVING any_condition_$n] [_W any_order_$n]
item_$n: "*" | table_$n ".*" | any_condition_$n
table_$n: $tables
column_$n: $columns
""")
"""Rules of a scope. ``value`` is a query of one column."""

_EXPRESSION = Template("""
${any}order_$n: ORDER BY ${any}key_$n (_COMMA ${any}key_$n)*
${any}key_$n: ${any}term_$n [_W (ASC | DESC)] [_W NULLS (FIRST | LAST)]
?${any}term_$n: (column_$n | ${any}call_$n | ${any}case_$n) ((SUM | PRODUCT) [SIGN] ${any}primary_$n)*
?${any}condition_$n: ${any}conjunction_$n | ${any}condition_$n _W OR ${any}conjunction_$n
?${any}conjunction_$n: ${any}negation_$n | ${any}conjunction_$n _W AND ${any}negation_$n
?${any}negation_$n: ${any}predicate_$n | NOT ${any}negation_$n
?${any}predicate_$n: ${any}expression_$n
    | ${any}expression_$n COMPARISON ${any}expression_$n
    | ${any}expression_$n _W IS [NOT] (NULL | TRUE | FALSE)
    | ${any}expression_$n _W [NOT] IN _OPEN (value | ${any}expression_$n (_COMMA ${any}expression_$n)*) _CLOSE
    | ${any}expression_$n _W [NOT] LIKE ${any}expression_$n
    | ${any}expression_$n _W [NOT] BETWEEN ${any}expression_$n _W AND ${any}expression_$n
?${any}expression_$n: [SIGN] ${any}product_$n | ${any}expression_$n SUM ${any}product_$n
?${any}product_$n: ${any}primary_$n | ${any}product_$n PRODUCT [SIGN] ${any}primary_$n
?${any}primary_$n: NUMBER | STRING | NULL | TRUE | FALSE | column_$n | ${any}call_$n | ${any}case_$n
    | _OPEN (${any}condition_$n | value) _CLOSE
${any}case_$n: CASE [${any}expression_$n _W] ${any}when_$n+ [ELSE ${any}condition_$n _W] END
${any}when_$n: WHEN ${any}condition_$n _W THEN ${any}condition_$n _W
${any}call_$n: FUNCTION _OPEN ${any}expression_$n _CLOSE$aggregates
""")
"""Rules of the expressions of a scope; those in ``any`` may have aggregates, which WHERE, ON and GROUP BY may not."""

_AGGREGATES = Template(' | COUNT _OPEN "*" _CLOSE | AGGREGATE _OPEN [DISTINCT] expression_$n _CLOSE')

_MOST_TRIPLES = 12
"""Tables of which three may be joined, which takes rules for each two; with more, a query joins two at most."""

_MOST_SCOPES = 15
"""Scopes of one table or two: those of 5 tables, which compile in about a second; with more, pairs have none."""

_SHARED = """
limit: LIMIT ROWS [_W OFFSET ROWS]
ROWS: /[0-9]{1,9}/
_join: [INNER | (LEFT | RIGHT | FULL) [OUTER]] JOIN
COUNT: "COUNT" | "count"
AGGREGATE: /AVG|COUNT|MAX|MIN|SUM|avg|count|max|min|sum/
FUNCTION: /ABS|LENGTH|LOWER|ROUND|TRIM|UPPER|abs|length|lower|round|trim|upper/

"""
"""Rules of all scopes. The functions are those of one argument that PostgreSQL, SQLite and MySQL share."""


RESERVED = """
abort accessible action add after all alter always analyse analyze and any array as asc asensitive asymmetric attach
authorization autoincrement before begin between bigint binary blob both by call cascade case cast change char
character check collate collation column commit concurrently condition conflict constraint continue convert create
cross cube cume_dist current current_catalog current_date current_role current_schema current_time current_timestamp
current_user cursor database databases day_hour day_microsecond day_minute day_second dec decimal declare default
deferrable deferred delayed delete dense_rank desc describe detach deterministic distinct distinctrow div do double
drop dual each else elseif empty enclosed end escape escaped except exclude exclusive exists exit explain fail false
fetch filter first first_value float float4 float8 following for force foreign freeze from full fulltext function
generated get glob grant group grouping groups having high_priority hour_microsecond hour_minute hour_second if
ignore ilike immediate in index indexed infile initially inner inout insensitive insert instead int int1 int2 int3
int4 int8 integer intersect interval into io_after_gtids io_before_gtids is isnull iterate join json_table key keys
kill lag last last_value lateral lead leading leave left like limit linear lines load localtime localtimestamp lock
long longblob longtext loop low_priority match materialized maxvalue mediumblob mediumint mediumtext middleint
minute_microsecond minute_second mod modifies natural no no_write_to_binlog not nothing notnull nth_value ntile null
nulls numeric of offset on only optimize optimizer_costs option optionally or order others out outer outfile over
overlaps partition percent_rank placing plan pragma preceding precision primary procedure purge query raise range
rank read read_write reads real recursive references regexp reindex release rename repeat replace require resignal
restrict return returning revoke right rlike rollback row row_number rows savepoint schema schemas
second_microsecond select sensitive separator session_user set show signal similar smallint some spatial specific
sql sql_big_result sql_calc_found_rows sql_small_result sqlexception sqlstate sqlwarning ssl starting stored
straight_join symmetric system system_user table tablesample temp temporary terminated then ties tinyblob tinyint
tinytext to trailing transaction trigger true unbounded undo union unique unlock unsigned update usage use user
using utc_date utc_time utc_timestamp vacuum values varbinary varchar varcharacter variadic varying verbose view
virtual when where while window with within without write xor year_month zerofill
"""
"""Words that SQLite, PostgreSQL or MySQL reserves somewhere; SQLite reads some of them as names, too."""


def over_tables(text: str, tables: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    """Returns the grammar of queries over tables, and the description that prompts show.

    Args:
        text: the ready grammar of SQL, whose terminals are used.
        tables: the columns of each table.

    Raises ``TypeError`` and ``GrammarError`` for malformed names.
    """
    terminals = text[text.index("// With the white space") :]
    known = {_spell(name, "table"): _columns(name, columns) for name, columns in _require(tables).items()}
    named = {_literal(name): columns for name, columns in known.items()}
    pairs = list(combinations(named, 2)) if comb(len(named) + 1, 2) <= _MOST_SCOPES else []
    least, most = (3, len(named)) if pairs else (2, 3 if len(named) <= _MOST_TRIPLES else 2)
    sets = [*((name,) for name in named), *pairs] + ([tuple(named)] if len(named) >= least else [])
    queries, values = ("\n    | ".join(f"{kind}_{n}" for n in range(len(sets))) for kind in ("query", "value"))
    rules = [f'start: query [_W? ";"]\nquery: {queries}\nvalue: {values}\n', _SHARED]
    for number, members in enumerate(sets):
        tables_of = {name: named[name] for name in members}
        rules.append(_scope(number, tables_of, min(len(members), least), min(len(members), most)))
    described = "\n".join(f"- {name} with the columns {', '.join(columns)}" for name, columns in known.items())
    return "".join([*rules, terminals]), f"One SQL query over these tables:\n{described}"


def _scope(number: int, tables: Mapping[str, Sequence[str]], least: int, most: int) -> str:
    """Returns the rules of a scope. A column that only one of its tables has may go without the table's name.

    ``least``, ``most``: how many of the tables a FROM names, each once.
    """
    count = Counter(column.casefold() for columns in tables.values() for column in columns)
    alone = [column for columns in tables.values() for column in columns if count[column.casefold()] == 1]
    columns = [f'{table} "." ({_any(columns)})' for table, columns in tables.items()] + ([_any(alone)] if alone else [])
    index = {name: str(position) for position, name in enumerate(tables)}

    def more(named: Iterable[str]) -> str:
        """Returns the name of the rule for the joins behind some tables."""
        return "_".join([f"_more_{number}", *sorted(index[name] for name in named)])

    sources = []
    for first, *others in permutations(tables, least):
        behind = f"[{more((first, *others))}]" if least < most else ""
        sources.append(" ".join([first, *(_join(number, other) for other in others), behind]))
    joins = []
    for size in range(least, most):
        for named in combinations(tables, size):
            left = [other for other in tables if other not in named]
            ways = [f"{_join(number, other)} [{more((*named, other))}]" for other in left]
            last = _join(number, f"({' | '.join(left)})")
            joins.append(f"{more(named)}: {last if size + 1 == most else ' | '.join(ways)}\n")
    parts = {"n": number, "source": " | ".join(sources), "tables": " | ".join(tables), "columns": " | ".join(columns)}
    aggregates = {"": "", "any_": _AGGREGATES.substitute(parts)}
    rules = [_EXPRESSION.substitute(parts, any=kind, aggregates=more) for kind, more in aggregates.items()]
    return "".join([_SCOPE.substitute(parts), *joins, *rules])


def _join(number: int, table: str) -> str:
    """Returns the joins with a table, or with one of several in brackets, in a scope."""
    return f"(_COMMA {table} | _W CROSS JOIN {table} | _W _join {table} _W ON condition_{number})"


def _any(names: Sequence[str]) -> str:
    return " | ".join(map(_literal, names))


def _literal(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _require(tables: object) -> Mapping[object, object]:
    if not isinstance(tables, Mapping):
        raise TypeError(f"tables must map the name of each table to a list of its columns, not be {tables!r}")
    if not tables:
        raise GrammarError("tables is empty; name a table and its columns")
    return tables


def _columns(table: object, columns: object) -> list[str]:
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise TypeError(f"the columns of the table {table!r} must be a list of names, not {columns!r}")
    if not columns:
        raise GrammarError(f"the table {table!r} has no columns; name one")
    return list(dict.fromkeys(_spell(column, f"column of the table {table!r}") for column in columns))


def _spell(name: object, kind: str) -> str:
    """Returns a name as SQL spells it: in quotes if it is a reserved word, or no word of small letters.

    PostgreSQL reads a word without quotes in small letters.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a {kind} must be str, not {name!r}")
    if not name or re.search(r"[\x00-\x1f\x7f\ud800-\udfff]", name):
        raise GrammarError(f"{name!r} is no name of a {kind}; it needs characters, without line breaks and controls")
    quoted = name.replace('"', '""')
    is_plain = re.fullmatch("[a-z_][a-z0-9_]*", name) and name not in RESERVED.split()
    return name if is_plain else f'"{quoted}"'

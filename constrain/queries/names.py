"""Names of tables and columns as SQL spells them."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from constrain.lark.sql_tables import RESERVED

if TYPE_CHECKING:
    from constrain.queries.kinds import Dialect

FUNCTIONS = frozenset(
    [
        "abs",
        "avg",
        "coalesce",
        "count",
        "extract",
        "length",
        "lower",
        "max",
        "min",
        "round",
        "strftime",
        "sum",
        "to_char",
        "upper",
    ]
)
"""Names of the functions of queries. PostgreSQL gives them to columns of a result, so ORDER BY may mean those."""

_MORE = """
between bigint bit boolean char character coalesce dec decimal exists extract float grouping inout int integer interval
json json_array json_arrayagg json_exists json_object json_objectagg json_query json_scalar json_serialize json_value
merge_action national nchar none normalize nullif numeric out overlay position precision real row setof smallint
substring time timestamp treat trim values varchar xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces
xmlparse xmlpi xmlroot xmlserialize xmltable
"""
"""Words that PostgreSQL reserves in some places."""


@cache
def reserved() -> frozenset[str]:
    """Returns the words that are names in quotes only, in small letters."""
    return frozenset(RESERVED.split()) | frozenset(_MORE.split())


def spell(name: str, dialect: Dialect) -> str:
    """Returns a name as queries have it, in quotes where the dialect needs them.

    >>> spell("total", "postgresql"), spell("Total", "postgresql"), spell("Total", "sqlite"), spell("order", "sqlite")
    ('total', '"Total"', 'Total', '"order"')
    """
    pattern = "[a-z_][a-z0-9_]*" if dialect == "postgresql" else "[A-Za-z_][A-Za-z0-9_]*"
    if re.fullmatch(pattern, name) and name.lower() not in reserved():
        return name
    quoted = name.replace('"', '""')
    return f'"{quoted}"'

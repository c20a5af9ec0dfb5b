"""Writes SQL in a fenced block, after a sentence of reasoning, over the tables that there are.

python examples/grammar.py [model.gguf]
"""

from __future__ import annotations

import sys

import constrain
from constrain import Lark
from constrain.parts import sequence, text

QUERY = Lark(
    r"""
    start: "SELECT " columns " FROM readers" where? ";"
    columns: "*" | COLUMN (", " COLUMN)*
    where: " WHERE " COLUMN " " OPERATOR " " NUMBER
    COLUMN: "name" | "age" | "city"
    OPERATOR: "<" | "=" | ">"
    NUMBER: /[0-9]{1,3}/
    """,
    description="an SQL query over the table readers with the columns name, age and city",
)
ANSWER = sequence(text(until="\n", max_length=150), "\n```sql\n", QUERY, "\n```")


def main() -> None:
    """Prints the query, and where a wrong one stops being one."""
    with constrain.Model(sys.argv[1] if len(sys.argv) > 1 else None) as model:
        answer = constrain.generate(
            model, "Which readers are older than 30?", schema=ANSWER, temperature=0, max_tokens=80
        )
    print(answer.split("```")[1].removeprefix("sql\n").strip())
    print(constrain.explain(QUERY, "SELECT name FROM writers;"))


if __name__ == "__main__":
    main()

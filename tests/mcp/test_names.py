"""Names of tools: different from each other, and such as models may call."""

from __future__ import annotations

from random import Random

from constrain.chat.tools.checks import ANY_TOOL_NAME
from constrain.mcp.names import different_names
from tests.support import for_each


@for_each(
    "tools, names",
    ([("a", "read"), ("b", "write")], ["read", "write"]),
    ([("a", "read"), ("b", "read"), ("b", "write")], ["a_read", "b_read", "write"]),
    ([("a", "x/y"), ("a", "x.y")], ["x/y", "x.y"]),
    ([("a", "x y"), ("a", "x:y")], ["a_x_y", "a_x_y_2"]),
    ([("a", "r"), ("b", "r"), ("c", "a_r")], ["a_r", "b_r", "a_r_2"]),
    ([("a", "größe"), ("a", "")], ["gr__e", "_"]),
    ([("a", "x" * 140), ("b", "x" * 140)], ["a_" + "x" * 126, "b_" + "x" * 126]),
    ([("a", "y" * 140), ("a", "y" * 141)], ["a_" + "y" * 126, "a_" + "y" * 124 + "_2"]),
    ([("a", "t"), ("a", "t"), ("a", "a_t_2")], ["a_t", "a_t_3", "a_t_2"]),
)
def test_names(tools: list[tuple[str, str]], names: list[str]) -> None:
    assert different_names(tools) == names


def test_random_names_differ_and_can_be_called() -> None:
    rng = Random(1)
    for _ in range(300):
        tools = [
            ("".join(rng.choices("ab_", k=rng.randint(1, 60))), "".join(rng.choices("ab_2/.", k=rng.randint(0, 4))))
            for _ in range(rng.randint(1, 12))
        ]
        names = different_names(tools)
        assert len(set(names)) == len(tools)
        assert all(ANY_TOOL_NAME.fullmatch(name) for name in names)

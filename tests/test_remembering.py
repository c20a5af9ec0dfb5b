"""Results that are remembered within a number of bytes."""

from __future__ import annotations

from constrain._remembering import remembered


def test_results_are_remembered_while_they_fit() -> None:
    made: list[str] = []

    @remembered(10, 100, len)
    def double(text: str) -> str:
        made.append(text)
        return 2 * text

    for _ in range(2):
        assert double("a" * 40) == "a" * 80
        assert double("b" * 40) == "b" * 80
    assert len(made) == 2
    double("c" * 40)  # together they are too many: all others are forgotten
    double("a" * 40)
    assert len(made) == 4


def test_what_is_too_large_is_not_remembered_and_drops_nothing() -> None:
    made: list[str] = []

    @remembered(10, 100, len)
    def double(text: str) -> str:
        made.append(text)
        return 2 * text

    double("a")
    for _ in range(2):
        double("b" * 101)
    double("a")
    assert made == ["a", "b" * 101, "b" * 101]

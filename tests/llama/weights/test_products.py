"""Products are timed by format, stored as llama.cpp would store them."""

from __future__ import annotations

import llama_cpp
import pytest

from constrain.llama.ggml import ggml
from constrain.llama.loading import llama_log
from constrain.llama.weights.layouts import uses_extra_buffers
from constrain.llama.weights.products import Products


@pytest.mark.parametrize("form", ["f16", "q4_0", "q4_1", "q8_0", "q4_K", "q6_K", "iq4_nl"])
def test_each_format_can_be_timed(form: str) -> None:
    with llama_log(), Products(1, extra_buffers=uses_extra_buffers()) as products:
        one, several = products.seconds(ggml().kinds[form], 256, 512, (1, 16), 1 << 20)
    assert 0 < one < 16 * several


def test_more_tokens_take_longer() -> None:
    with llama_log(), Products(1, extra_buffers=uses_extra_buffers()) as products:
        one, many = products.seconds(ggml().kinds["q4_1"], 1024, 1024, (1, 64), 4 << 20)
    assert many > 4 * one


def test_layouts_are_those_that_llama_cpp_announces() -> None:
    kinds = ggml().kinds
    announced: list[str] = []
    with llama_log(announced.append), Products(1, extra_buffers=uses_extra_buffers()) as products:
        found = {form: products.is_repacked(kinds[form], 256, 64) for form in ("f16", "q4_0", "q4_1", "iq4_nl", "q6_K")}
        for form, is_repacked in found.items():
            announced.clear()
            products.seconds(kinds[form], 256, 64, (1,), 1)
            assert any(f"with {form}" in line for line in announced) is is_repacked
    assert not found["f16"]
    system = llama_cpp.llama_print_system_info()
    assert found["q4_0"] or not uses_extra_buffers() or not (b"REPACK = 1" in system and b"AVX2 = 1" in system)


def test_without_layouts_of_its_own_nothing_is_repacked() -> None:
    with llama_log(), Products(1, extra_buffers=False) as products:
        assert not products.is_repacked(ggml().kinds["q4_0"], 256, 64)


def test_closing_twice_is_allowed() -> None:
    products = Products(1)
    products.close()
    products.close()

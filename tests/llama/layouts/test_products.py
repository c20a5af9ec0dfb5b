"""Products are stored as llama.cpp would store their weights."""

from __future__ import annotations

import llama_cpp

from constrain.llama.ggml import ggml
from constrain.llama.layouts.check import uses_extra_buffers
from constrain.llama.layouts.products import Products
from constrain.llama.loading import llama_log


def test_formats_with_layouts_of_their_own_are_repacked() -> None:
    kinds = ggml().kinds
    with llama_log(), Products(1, extra_buffers=uses_extra_buffers()) as products:
        assert not products.is_repacked(kinds["f16"], 256, 64)
        system = llama_cpp.llama_print_system_info()
        has_layouts = uses_extra_buffers() and b"REPACK = 1" in system and b"AVX2 = 1" in system
        assert products.is_repacked(kinds["q4_0"], 256, 64) or not has_layouts


def test_without_layouts_of_its_own_nothing_is_repacked() -> None:
    with llama_log(), Products(1, extra_buffers=False) as products:
        assert not products.is_repacked(ggml().kinds["q4_0"], 256, 64)


def test_closing_twice_is_allowed() -> None:
    products = Products(1)
    products.close()
    products.close()

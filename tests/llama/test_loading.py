"""Loading models: which of llama.cpp's kernels are kept away from."""

from __future__ import annotations

import llama_cpp
import pytest

import constrain
from constrain.llama.loading import Llama
from tests.support import demo_model

SYSTEM = b"CPU : AVX512 = 1 | AMX_INT8 = %d | REPACK = 1 | "


@pytest.mark.parametrize("amx", [False, True])
def test_weights_are_not_laid_out_for_amx_kernels(monkeypatch: pytest.MonkeyPatch, amx: bool) -> None:
    monkeypatch.setattr(llama_cpp, "llama_print_system_info", lambda: SYSTEM % amx)
    llama = Llama(str(demo_model()), vocab_only=True, verbose=False)
    assert llama.model_params.use_extra_bufts is not amx
    assert llama.model_params.vocab_only


def test_models_are_loaded_that_way() -> None:
    model = constrain.Model(demo_model(), n_ctx=64)
    assert isinstance(model.llama, Llama)
    model.close()

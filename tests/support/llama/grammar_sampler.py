"""llama.cpp's own grammar sampler: what it makes of a GBNF grammar."""

from __future__ import annotations

import llama_cpp
import numpy as np

import constrain


class LlamaMatcher:
    """llama.cpp's grammar sampler for one grammar, over the vocabulary of a model."""

    def __init__(self, model: constrain.Model, grammar: str) -> None:
        self.n_vocab = model.vocabulary.n_vocab
        self.eos = next(iter(model.vocabulary.eos))
        vocabulary = llama_cpp.llama_model_get_vocab(model.llama.model)
        self.sampler = llama_cpp.llama_sampler_init_grammar(vocabulary, grammar.encode(), b"root")
        assert self.sampler, grammar

    def close(self) -> None:
        llama_cpp.llama_sampler_free(self.sampler)

    def allows(self, token: int) -> bool:
        data = (llama_cpp.llama_token_data * 1)(llama_cpp.llama_token_data(token, 0.0, 0.0))
        array = llama_cpp.llama_token_data_array(data, 1, -1, False)
        llama_cpp.llama_sampler_apply(self.sampler, array)
        return bool(data[0].logit == 0.0)

    def mask(self) -> list[bool]:
        """Whether each token is allowed."""
        data = np.zeros(self.n_vocab, [("id", np.int32), ("logit", np.float32), ("p", np.float32)])
        data["id"] = np.arange(self.n_vocab)
        array = (llama_cpp.llama_token_data * self.n_vocab).from_buffer(data)
        llama_cpp.llama_sampler_apply(self.sampler, llama_cpp.llama_token_data_array(array, self.n_vocab, -1, False))
        found: list[bool] = (data["logit"] == 0.0).tolist()
        return found

    def accept(self, token: int) -> None:
        llama_cpp.llama_sampler_accept(self.sampler, token)

    def accepts(self, tokens: list[int]) -> bool:
        llama_cpp.llama_sampler_reset(self.sampler)
        for token in tokens:
            if not self.allows(token):
                return False
            llama_cpp.llama_sampler_accept(self.sampler, token)
        return self.allows(self.eos)

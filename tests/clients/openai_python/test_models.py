"""``client.models``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from openai import NotFoundError

if TYPE_CHECKING:
    from openai import OpenAI


def test_the_list_has_the_model(client: OpenAI, model: str) -> None:
    page = client.models.list()
    assert page.object == "list"
    assert [each.id for each in page] == [model]


def test_a_model_has_all_fields(client: OpenAI, model: str) -> None:
    found = client.models.retrieve(model)
    assert (found.id, found.object) == (model, "model")
    assert isinstance(found.created, int)
    assert found.owned_by


def test_an_unknown_model_is_not_found(client: OpenAI) -> None:
    with pytest.raises(NotFoundError) as caught:
        client.models.retrieve("no-such-model")
    assert caught.value.code == "model_not_found"

"""How an answer at hand ends within a budget, and why a token is refused: questions to a matcher, without the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.errors import BudgetError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.generation.plan import Plan
    from constrain.server.playground.request import PlaceRequest


def show_budget(plan: Plan, asked: PlaceRequest) -> dict[str, Any]:
    """Returns how much of an answer a budget leaves as it is, and how the answer closes from there."""
    tokens, max_tokens = asked.tokens, asked.max_tokens
    if plan.constraint is None:
        kept = min(len(tokens), max_tokens)
        return {**_ending(plan, tokens[:kept], ()), "least": 0, "kept": kept, "fits": True}
    eos = plan.model.vocabulary.eos
    least = sum(token not in eos for token in plan.start(None).completion_tokens())
    try:
        matcher = plan.start(max_tokens)
    except BudgetError:
        return {**_ending(plan, (), ()), "least": least, "kept": 0, "fits": False}
    kept = matcher.accept_many(tokens)
    closing = [token for token in matcher.completion_tokens() if token not in eos]
    return {**_ending(plan, tokens[:kept], closing), "least": least, "kept": kept, "fits": True}


def _ending(plan: Plan, kept: Sequence[int], closing: Sequence[int]) -> dict[str, Any]:
    data = b"".join(map(plan.model.vocabulary.token_bytes, (*kept, *closing)))
    return {
        "closing": [{"token": token, "text": plan.describe_token(token)[0]} for token in closing],
        "text": data.decode(errors="replace"),
        "total": len(kept) + len(closing),
    }


def explain_token(plan: Plan, asked: PlaceRequest) -> dict[str, Any]:
    """Returns whether a token is allowed behind others, and why not, in a sentence."""
    tokens, token = asked.tokens, asked.token
    if plan.constraint is None:
        return {"allowed": True, "explanation": "This answer is free text, where every token is allowed."}
    try:
        matcher = plan.start(plan.settings.max_tokens)
    except BudgetError as error:
        return {"allowed": False, "explanation": f"No answer fits into max_tokens; {error.needed} tokens are enough."}
    if matcher.accept_many(tokens) < len(tokens):
        return {"allowed": False, "explanation": "The tokens before this place are refused themselves."}
    explanation = matcher.explain(token)
    return {"allowed": matcher.fork().accept(token), "explanation": explanation}

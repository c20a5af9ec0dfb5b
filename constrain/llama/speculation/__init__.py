"""Speculation: guessed tokens are evaluated together with the chosen ones, because several cost little more than one.

``guesses`` copies them from the prompt and the answer (read it first); ``gain`` decides how many are worth it, by what
they cost and by how many came true so far. Each place is then chosen with the logits after the tokens before it, as
always, so the answer is the same; guesses that do not come true are removed.
"""

"""Certificates: what anyone needs to check an answer without the engine; ``constrain/verify.py`` checks them.

``export`` writes a ``Grammar`` as JSON. ``derivation`` finds one way to read a text by the rules of a grammar, with all
memory, as steps that a checker can follow. ``certificate`` puts both together with the tokens and the budget.
"""

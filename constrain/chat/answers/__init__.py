"""Answers: the language of what a model may write, as a grammar.

``generation.planning`` makes an ``AnswerLanguage`` (in ``language``) of ``choices``, which are read first: which texts,
calls and reasoning there may be. Its ``trees`` say where calls begin, with the ``structure`` around them.
``grammar`` makes one ``Grammar`` of it, with ``assembly`` for the rules, ``arguments`` for the arguments of calls,
``inputs`` and ``escapes`` for custom tools. ``choice`` is ``tool_choice``; ``fork`` leaves the choice between content
and call to the model.
"""

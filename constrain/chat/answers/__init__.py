"""Answers: the language of all answers to one request, as a grammar.

``generation.planning`` makes an ``AnswerLanguage`` (``language``). Read ``choices`` first: the texts, calls and
reasoning that an answer may contain. ``trees`` tells where calls begin, with the ``structure`` around them. ``grammar``
makes one ``Grammar`` from both, with ``assembly`` for the rules, ``arguments`` for the arguments of calls, ``inputs``
and ``escapes`` for custom tools. ``choice`` reads ``tool_choice``; ``call_or_content`` leaves the choice between call
and content to the model.
"""

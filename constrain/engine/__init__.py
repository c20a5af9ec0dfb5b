"""The engine: a grammar compiled for a vocabulary, and matchers that follow a generation through the grammar.

``compile`` (in ``compiling``), ``Constraint`` and ``Matcher`` (both in ``constraint``, which is read first) are public.
``terminals`` names what a grammar expects. ``remembered`` has the constraints that ``compile`` knows already,
``report`` the facts about one. ``forced`` writes forced text, which the kernel finds, in the tokenizer's own tokens.
``special`` finds the tokens that a grammar asks for, and ``classes`` divides a vocabulary by them. ``limited_rules``
puts borders around the rules that limit their tokens. ``staged`` goes on in another grammar where values depend on
others.
``captures`` finds the named parts of a finished text, which ``earley`` reads. ``logits`` applies masks in the decode
loops of other libraries, ``torch_masks`` to tensors of any device. ``export`` writes a schema or grammar for other
programs.
"""

"""Chat: conversations with tools, from messages to a prompt and from written text to a reply.

The callers are ``generation`` and ``server``. Read ``tools`` first (the tools that a model may call), then ``families``
(the form in which each model family writes calls), ``prompt`` (messages to token ids), ``answers`` (the grammar of all
answers) and ``reading`` (from written bytes to events and a reply). ``inspection`` says what a list of tools costs, for
``constrain check``.
"""

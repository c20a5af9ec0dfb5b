"""The command line: ``constrain generate``, ``batch``, ``serve``, ``check``, ``compile``, ``explain``, ``export``...

``constrain.__main__`` calls ``main`` in ``program``: read it first. Each larger command has a module of its own
(``doctor``, ``grammars``, ``models``, ``play``), and ``chat`` a package; ``tracing`` has what ``generate --explain``
and ``--trace`` write, ``verify`` what ``--certificate`` writes. ``flags`` makes flags from the declarations of options,
``shared`` has those and the helpers that several commands share, ``streams`` prepares standard input and output. Only
this package imports ``typer`` and ``rich``.
"""

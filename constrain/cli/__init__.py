"""The command line: ``constrain generate``, ``batch``, ``serve``, ``check``, ``compile``, ``explain``, ``grammars``...

``constrain.__main__`` calls ``main`` in ``program``, which is read first. Each larger command has a module of its own;
``shared`` has the options that several take, ``streams`` sees to standard input and output. ``typer`` and ``rich`` are
imported here and nowhere else.
"""

"""Whether answers are right: ``calls`` judges function calls, ``documents`` values read from texts."""

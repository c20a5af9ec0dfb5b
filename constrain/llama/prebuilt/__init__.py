"""llama.cpp without a compiler: the library of another wheel, for bindings that were installed without their own.

``finding`` (read first) hooks into the import of ``llama_cpp``: if that has no library, it takes the one of the extra
``prebuilt``. ``table`` says which versions fit. ``proof`` compares the library with the table before anything uses it.
``canary``, beside this package, computes known numbers with a model.
"""

from __future__ import annotations


class Mismatch(Exception):  # noqa: N818 - never raised to callers
    """The library is another one than the bindings call. The text says by what that is known."""

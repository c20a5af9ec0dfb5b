"""The pages of docs/reference that are generated: one module for each, with a function ``page`` that returns its text.

``python -m tools.pages`` writes all of them, and the plots in docs/plots. Start reading at ``__main__``; ``markdown``
has what the pages share.
"""

from __future__ import annotations

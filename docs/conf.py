"""How Sphinx builds the documentation: ``python -m sphinx -W --keep-going -b html docs build/docs``."""

from __future__ import annotations

import importlib.metadata
import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pygments.lexers.data import JsonLexer
from pygments.lexers.special import TextLexer
from sphinx.highlighting import lexers

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_ROOT = Path(__file__).resolve().parents[1]

# `python -m` looks for modules in the working directory first. Without a kernel built into them, the sources of a
# checkout cannot be imported: then the installed package is documented.
if not list((_ROOT / "constrain" / "kernel").glob("*.so")):
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _ROOT]

project = "constrain"
author = "the constrain authors"
project_copyright = author
try:
    release = importlib.metadata.version("constrain-llm")
except importlib.metadata.PackageNotFoundError:  # a kernel built into the sources, and nothing installed
    release = "development"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"constrain {release}"
html_copy_source = False
html_show_sphinx = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4  # pages link to each other's headings, as on GitHub

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
napoleon_numpy_docstring = False
napoleon_use_ivar = True

copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = r"^\$ "
copybutton_prompt_is_regexp = True


def _show_source_signature(_: object, thing: object, __: object) -> None:
    """Lets pages show ``**options``, which have a page of their own, rather than all of them in each signature."""
    if inspect.isfunction(thing):
        vars(thing).pop("__signature__", None)


def _leave_out_options(_: object, __: object, ___: object, ____: object, _____: object, lines: list[str]) -> None:
    """Ends a docstring in front of the list of options."""
    if "Options:" in lines:
        del lines[lines.index("Options:") :]


def setup(app: Sphinx) -> None:
    """Registers the two functions above."""
    app.connect("autodoc-before-process-signature", _show_source_signature)
    app.connect("autodoc-process-docstring", _leave_out_options, priority=400)  # before napoleon


nitpicky = True
nitpick_ignore_regex = [
    # Annotations in signatures: types of other projects, whose inventories would have to be fetched from the network,
    # and private types, aliases and type variables. Public names ("constrain.Model") are checked.
    ("py:(class|data|obj)", r"(?!constrain\.\w+$).*"),
]

lexers["csv"] = TextLexer()
lexers["jsonl"] = JsonLexer()  # JSON Lines, which Pygments does not know by name

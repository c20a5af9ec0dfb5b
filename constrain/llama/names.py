"""Names of models: those that ``constrain models`` lists, and ``OWNER/REPOSITORY:FILE`` of Hugging Face."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from constrain.errors import ModelError
from constrain.llama.finding import AnyPath, fetched_folder, files_below, find_models, first_files

if TYPE_CHECKING:
    from collections.abc import Iterable

_HUB_NAME = re.compile(r"([\w-][\w.-]*/[\w-][\w.-]*)(?::(.+))?", re.ASCII)


class HubName(NamedTuple):
    """The name of a model on Hugging Face.

    Attributes:
        repository: owner and name of the repository, such as ``Qwen/Qwen3-0.6B-GGUF``.
        which: name of a file, or the quantization at the end of one; empty for the only file.
    """

    repository: str
    which: str

    def pick(self, files: Iterable[AnyPath]) -> list[AnyPath]:
        """Returns the files that the name means, of paths in the repository; of a split model its first part."""
        models = first_files(files)
        if not self.which:
            return models
        which = self.which.casefold()
        named = [each for each in models if which in (each.as_posix().casefold(), each.name.casefold())]
        ending = re.compile(rf"(.*[-._])?{re.escape(self.which)}(-00001-of-\d{{5}})?", re.IGNORECASE)
        return named or [each for each in models if ending.fullmatch(each.stem)]


def read_hub_name(name: str) -> HubName | None:
    """Returns what a name like ``OWNER/REPOSITORY:FILE`` says; None for another text."""
    found = _HUB_NAME.fullmatch(name)
    return None if found is None else HubName(found[1], found[2] or "")


def model_path(given: str | os.PathLike[str]) -> Path:
    """Returns the path of a model: ``given``, or the file on this machine that has this name.

    A name is one that ``constrain models`` lists or one with which it has fetched a file. Returns ``given`` if there is
    no such model. Raises ``ModelError`` for a name of several models.
    """
    name, path = os.fspath(given), Path(given)
    if os.path.exists(given):  # noqa: PTH110 - it may be too long for a path
        return path
    found = _fetched(name) or [one.path for one in find_models() if one.name == name]
    if len(found) > 1:
        paths = ", ".join(map(str, found))
        raise ModelError(f"several models have the name {name}: {paths}; pass the path of one of them")
    return found[0] if found else path


def _fetched(name: str) -> list[Path]:
    """Returns the fetched files that a name of Hugging Face means."""
    hub = read_hub_name(name)
    if hub is None:
        return []
    folder = fetched_folder() / hub.repository
    return [folder / each for each in hub.pick(path.relative_to(folder) for path in files_below(folder))]

"""Custom metaschemas: the keywords that a ``$vocabulary`` leaves out (2019-09 and 2020-12, section 8.1.2)."""

from __future__ import annotations

from constrain.errors import SchemaError, UnsupportedSchemaError
from constrain.json_schema.documents.dialects import DRAFT_2019, DRAFT_2020, Declared
from constrain.json_schema.documents.keyword import KEYWORDS

_SHARED: dict[str, tuple[str, ...]] = {"core": (), "validation": ("validation",), "meta-data": (), "content": ()}

_VOCABULARIES = {
    DRAFT_2019: {**_SHARED, "applicator": ("applicator", "unevaluated"), "format": ("format",)},
    DRAFT_2020: {
        **_SHARED,
        "applicator": ("applicator",),
        "unevaluated": ("unevaluated",),
        "format-annotation": ("format",),
        "format-assertion": ("format",),
    },
}
"""The vocabularies of each draft, by the last step of their URIs, and the ``of_vocabulary`` of the records in each."""


def declared_vocabulary(vocabulary: object, uri: str, pointer: str) -> Declared:
    """Returns the dialect of the metaschema ``uri`` with this ``$vocabulary``; ``pointer``: its ``$schema`` keyword."""
    if not isinstance(vocabulary, dict) or not all(isinstance(needed, bool) for needed in vocabulary.values()):
        raise SchemaError(f"the $vocabulary of {uri} must map URIs to booleans", pointer=pointer)
    for draft, kinds in _VOCABULARIES.items():
        known = {f"https://json-schema.org/{draft.name.replace(' ', '/')}/vocab/{step}": kinds[step] for step in kinds}
        if next(iter(known)) in vocabulary:  # every metaschema must name the core vocabulary, which tells the draft
            break
    else:
        raise UnsupportedSchemaError(f"the $vocabulary of {uri} lacks the core vocabulary", pointer=pointer)
    for name, needed in vocabulary.items():
        if needed and name not in known:
            raise UnsupportedSchemaError(f"{uri} requires the vocabulary {name}, which is not known", pointer=pointer)
    used = {"core", *(kind for name in known.keys() & vocabulary.keys() for kind in known[name])}
    return Declared(draft, KEYWORDS.names(lambda each: draft in each.drafts and each.of_vocabulary not in used))

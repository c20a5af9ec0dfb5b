"""Regular expressions: their trees (``tree``) and the parser of three dialects (``parser``)."""

"""Python types: their JSON Schemas, and their values in answers.

``generate`` and the tools of ``chat`` call this package, by way of ``language.schema_text`` and ``language.result``.
Read ``schema`` first: it takes Pydantic's schema of a type and tightens it to what the type's validators accept.
``patterns`` holds the patterns of texts that standard types read. ``answer_text`` reads the JSON text of an answer
with a limit on its nesting, ``exact_decimals`` the decimals in it without rounding. ``field_checks`` has the validators
of a type judge one value at a time.
"""

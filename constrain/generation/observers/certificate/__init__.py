"""Certificates of finished answers: what they say, and how others check it.

``observer`` watches an answer with ``certificate=True``. ``sources`` writes the language of an answer as JSON and reads
it again, ``certifying`` makes the certificate of one answer, ``replay`` compiles the source of a certificate again and
has the model repeat the answer. The proof itself is the subject of ``constrain.certificates``.
"""

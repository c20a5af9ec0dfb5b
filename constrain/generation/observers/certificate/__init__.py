"""Certificates of finished answers: what they say, and how others check it.

``sources`` writes the language of an answer as JSON and reads it again, ``certifying`` observes an answer and makes its
certificate, ``replay`` compiles the source of a certificate again and has the model repeat the answer. The proof itself
is the subject of ``constrain.certificates``.
"""

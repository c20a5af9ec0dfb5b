"""The trace of an answer: for each token, what the mask allowed, what the model wanted, what the grammar expected.

``recorder`` watches the answer, ``records`` has what is reported.
"""

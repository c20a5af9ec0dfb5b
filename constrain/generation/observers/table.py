"""The table of observers: each is ``"module:Class"``, and is loaded when an answer asks for it."""

from __future__ import annotations

OBSERVERS: dict[str, str] = {
    "logprobs": ".logprobs:Logprobs",
    "unbias": ".choices:Choices",
    "confidence": ".confidence.observer:ConfidenceObserver",
    "trace": ".trace.recorder:Trace",
    "captures": ".captures:CapturesObserver",
    "quotes": ".quotes:QuotesObserver",
    "certificate": ".certificate.observer:CertificateObserver",
}
"""The observers by the option that asks for them; the order is that of their reports.

Modules with a dot in front are in this package. A name that is no option is asked for by every answer: the observer
itself says whether there is anything to report.
"""

"""llama.cpp: loading models, evaluating tokens, sampling.

``Model`` (in ``model``, read first) is public: it loads a file (``loading``, ``memory``) and has a context and a
queue of callers. ``lookup`` finds the model that a caller names, ``finding`` lists the models on this machine,
``names`` knows their names, and ``fetching`` fetches one from Hugging Face.
``decoding`` is the course of one answer; ``contexts`` are the sequences in which answers are evaluated;
``prompt_cache`` keeps evaluated beginnings of prompts on disk; ``costs`` says what several tokens cost at once,
``scheduling`` runs several answers by it, and ``speculation`` guesses tokens; ``threads`` uses fewer cores while
other programs are busy. ``layouts`` checks llama.cpp's own layouts of weights, through ``ggml``, the library below
llama.cpp. ``hashes`` computes
hashes of model files. ``processor`` has the processor's name, ``binding`` the structures shared with llama.cpp,
``embedding`` the vectors of texts, ``trees`` the probabilities of several continuations of a prompt. ``prebuilt`` gives
llama-cpp-python a library where it was installed without one, and ``canary`` compares numbers of a model with known
ones. ``generation`` and ``server`` are the callers.
"""

from __future__ import annotations

from constrain.llama.prebuilt import finding

finding.install()

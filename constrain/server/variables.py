"""The variables of the environment that a server reads: secrets that no list of processes should show."""

from __future__ import annotations

KEY_VARIABLE = "CONSTRAIN_API_KEY"
"""Variable with an API key, in addition to those of the file."""

STORE_VARIABLE = "CONSTRAIN_RESPONSE_STORE"
"""Variable with the place of stored responses, if neither a flag nor the configuration file names one."""

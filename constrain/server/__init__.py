"""An endpoint that speaks OpenAI's protocol, over HTTP: ``constrain serve``."""

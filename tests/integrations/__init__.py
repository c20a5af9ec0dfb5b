"""Tests of ``constrain.integrations``."""

"""Tests of answers on a cluster."""

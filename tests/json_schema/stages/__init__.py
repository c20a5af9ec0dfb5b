"""Tests of bounds by other fields."""

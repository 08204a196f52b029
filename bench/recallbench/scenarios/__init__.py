"""Scenarios: documented bug sequences, replayed."""

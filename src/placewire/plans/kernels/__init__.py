"""Compiled loops for planning and routing."""

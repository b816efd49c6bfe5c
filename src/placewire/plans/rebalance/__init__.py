"""Detect load that drifts apart, and adjust plans, assignments and the number of workers."""

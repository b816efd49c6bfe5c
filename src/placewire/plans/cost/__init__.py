"""Estimate and measure what a plan costs, and choose the cheapest."""

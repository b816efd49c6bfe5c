"""Estimate what plans cost, measure them on a sample, and choose the cheapest.

- model: PS2Stream's load model, prices in nanoseconds, and their calibration
- sstd, tornado: the cost models of SSTD and Tornado
- measures: what a plan sends, holds and costs on a sample; the cheapest of several, and why
"""

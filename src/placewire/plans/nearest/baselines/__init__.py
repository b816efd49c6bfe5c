"""Methods for `nearest` subscriptions that exist for comparison with `dkm`.

- `sop`: space-oriented partitioning
- `ps2`: PS2Stream's partitioning, extended to `nearest`
"""

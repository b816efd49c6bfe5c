"""Cost models: what a plan would make each worker do, on a sample.

- `model`: the cost model of PS2Stream, and the protocol of all
- `sstd`, `tornado`: the cost models of SSTD and Tornado
- `calibrate`: measure the model's constants on this machine
- `posting_work`: estimate the postings that an object meets
- `measures`: measure a plan on a sample: copies, dropped objects, loads
- `choice`: compare plans by cost, for the plan `auto`
"""

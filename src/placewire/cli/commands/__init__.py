"""The commands as they are declared: names, options and help; what they do is imported late.

`wire` has those that publish, subscribe and listen, `keys` those about keys, `serving` the service
itself, `logs` and `streams` those that run events, `looking` those that ask, `plans` those about
plans, `imports` and `bench` one each.
"""

"""Change the plan, or the number of workers, when loads drift apart.

A new plan is written with one commit and takes effect with the next.

- `tally`, `signals`: what each worker and leaf did, in one batch and over the last ones
- `rebalancer`: decide whether to change the plan, and how
- `ps2`, `sstd`, `tornado`: the adjustments of the three papers
- `adjustment`, `migration`: an adjustment as data, and the cells to move
- `trial`: try a plan on the recent sample
- `change`: write the next plan, chosen by load or requested by hand
- `dual_plan`: keep an older plan for the subscriptions that use it
- `handover`: move `nearest` and `relevant` subscriptions between workers
- `holdings`: how many subscriptions each leaf and worker has
- `prefetch`: read what the next plan will need
- `elastic`: choose the number of workers by load
"""

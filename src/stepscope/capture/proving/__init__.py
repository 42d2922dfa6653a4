"""Changes a running job for some blocks of its steps, and measures what that does to them; see docs/prove.md.

- options: what is to be proved, on the command line and in the environment
- places: finds what a name such as `data.py:prepare` or `checkpoint` stands for
- changes: what is put there: a count, a delay, the last results again, nothing at all
- experiment: which blocks run when; makes proofs of them
- prover: hears of the steps and runs the experiment on their thread
- devices, deadlines: what is waited for at the end of a block, and what never for ever
"""

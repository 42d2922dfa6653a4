"""What a change would give, measured in the running job: how blocks of steps are compared, and the result.

- plan: which blocks run in which order, how long they are, and how long a delay is
- pairs, estimate: a figure and its interval from pairs of blocks
- record: `Proof`, and the file of proofs that lies beside a session

All of it is arithmetic on step times; `stepscope.capture.proving` changes the job, and imports this room.
"""

import sched

s = sched.scheduler()
s.enter(0.1, 1, print, ("a",))
s.enter(0.05, 1, print, ("b",))
s.run()

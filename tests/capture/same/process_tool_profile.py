import profile

q = profile.Profile()
print(q.runcall(lambda: 5))

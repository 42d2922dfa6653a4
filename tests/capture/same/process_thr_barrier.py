import threading

b = threading.Barrier(3)
o = []
ts = [threading.Thread(target=lambda i=i: (b.wait(), o.append(i))) for i in range(3)]
[t.start() for t in ts]
[t.join() for t in ts]
print(sorted(o))

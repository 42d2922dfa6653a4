from concurrent.futures import ThreadPoolExecutor as E

e = E(2)
f = e.submit(lambda: 5)
print(f.result())

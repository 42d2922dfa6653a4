from concurrent.futures import ThreadPoolExecutor as E

with E(4) as e:
    print(sorted(e.map(lambda x: x * x, range(10))))

import random

random.seed(3)
print(random.random(), hash("abc"), hash(frozenset("abc")))

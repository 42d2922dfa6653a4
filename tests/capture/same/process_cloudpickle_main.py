import pickle

import cloudpickle


def f(x):
    return x + 1


class A:
    def g(self):
        return 3


print(pickle.loads(cloudpickle.dumps(f))(2), pickle.loads(cloudpickle.dumps(A))().g())

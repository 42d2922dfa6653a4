import pickle


class A:
    pass


print(pickle.dumps(A()), type(pickle.loads(pickle.dumps(A()))) is A)

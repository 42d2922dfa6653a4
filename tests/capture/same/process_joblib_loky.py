from joblib import Parallel, delayed


def f(x):
    return x * x


if __name__ == "__main__":
    print(Parallel(n_jobs=2)(delayed(f)(i) for i in range(5)))

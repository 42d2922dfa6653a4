import multiprocessing as mp

if __name__ == "__main__":
    mp.freeze_support()
    print("f")

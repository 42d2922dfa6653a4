from multiprocessing import shared_memory as s

if __name__ == "__main__":
    m = s.SharedMemory(create=True, size=10)
    m.buf[0] = 7
    print(m.buf[0])
    m.close()
    m.unlink()

raise MemoryError

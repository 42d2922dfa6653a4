"""Memory for tables that grow: of the C library, or in files where a size is set; see `memory.pyx`."""

cdef void* resize(void* memory, size_t size) noexcept nogil
cdef void* zeros(size_t count, size_t width) noexcept nogil
cdef void fill(void* memory, size_t place, const void* source, size_t size) noexcept nogil
cdef void free(void* memory) noexcept nogil

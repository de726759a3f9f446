#include "CAllocationCounter.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define CE_SANITIZED 1
#endif
#endif

static _Thread_local int64_t thread_count;
static _Atomic int64_t process_count;

int64_t ce_allocation_count(void) { return thread_count; }

int64_t ce_allocation_count_all_threads(void) {
    return atomic_load_explicit(&process_count, memory_order_relaxed);
}

static inline void count_one(void) {
    thread_count += 1;
    atomic_fetch_add_explicit(&process_count, 1, memory_order_relaxed);
}

#if defined(__GLIBC__) && !defined(CE_SANITIZED)

// glibc allows a program to replace its allocation functions; its own stay available under these
// names (https://www.gnu.org/software/libc/manual/html_node/Replacing-malloc.html).
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

int ce_allocation_counting_is_available(void) { return 1; }

void *malloc(size_t size) {
    count_one();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    count_one();
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    count_one();
    return __libc_realloc(block, size);
}

void *memalign(size_t alignment, size_t size) {
    count_one();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    count_one();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) return EINVAL;
    count_one();
    void *block = __libc_memalign(alignment, size);
    if (block == NULL && size != 0) return ENOMEM;
    *result = block;
    return 0;
}

void free(void *block) { __libc_free(block); }

#elif defined(__APPLE__) && !defined(CE_SANITIZED)

typedef void (malloc_logger_t)(uint32_t type, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uint32_t);
extern malloc_logger_t *malloc_logger;

// Bit 1 of the type means that a block was allocated.
static void log_allocation(
    uint32_t type, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uint32_t skip
) {
    if (type & 2) count_one();
}

__attribute__((constructor)) static void start_counting(void) { malloc_logger = log_allocation; }

int ce_allocation_counting_is_available(void) { return 1; }

#else

int ce_allocation_counting_is_available(void) { return 0; }

#endif

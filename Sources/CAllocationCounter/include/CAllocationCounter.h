#ifndef C_ALLOCATION_COUNTER_H
#define C_ALLOCATION_COUNTER_H

#include <stdint.h>

// Counts heap allocations (malloc, calloc, realloc, aligned variants), for tests and benchmarks.
//
// A program that links this target has its allocations counted from the start. On glibc the
// allocation functions are replaced by ones that count and then call glibc's own; on Darwin the
// malloc logger counts. Under a sanitizer, which replaces them itself, nothing is counted.

// 1 when allocations are counted, 0 when both counts stay at zero.
int ce_allocation_counting_is_available(void);

// Allocations made so far by the calling thread.
int64_t ce_allocation_count(void);

// Allocations made so far by all threads.
int64_t ce_allocation_count_all_threads(void);

#endif

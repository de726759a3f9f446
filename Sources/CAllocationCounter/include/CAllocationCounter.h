#ifndef C_ALLOCATION_COUNTER_H
#define C_ALLOCATION_COUNTER_H

#include <stdint.h>

// Counts heap allocations (malloc, calloc, realloc, aligned variants), for tests and benchmarks.
//
// The allocations of a program that links this target are counted from its start. On glibc the
// allocation functions are replaced by functions that count and then call glibc's own. On Darwin
// the malloc logger counts. Under a sanitizer, which replaces these functions itself, nothing is
// counted.

// Returns 1 if allocations are counted, 0 if both counts stay at zero.
int ce_allocation_counting_is_available(void);

// The number of allocations made so far by the calling thread.
int64_t ce_allocation_count(void);

// The number of allocations made so far by all threads.
int64_t ce_allocation_count_all_threads(void);

#endif

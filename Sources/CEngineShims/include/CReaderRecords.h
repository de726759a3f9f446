#ifndef CREADERRECORDS_H
#define CREADERRECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CE_READER_RECORDS_MAX 4096
#define CE_READER_RECORD_BYTES 64

// A record is what one thread says about its reading, on a cache line of its own: two 64-bit words,
// the depth (accessed atomically, by its users) and the record's index.

extern unsigned char ce_reader_records[CE_READER_RECORDS_MAX * CE_READER_RECORD_BYTES];

#if defined(__APPLE__)
extern _Thread_local void *ce_reader_own;
#else
extern _Thread_local void *ce_reader_own __attribute__((tls_model("initial-exec")));
#endif

/// Gives the calling thread a record for as long as it lives; NULL when none is left.
void *ce_reader_join(void);

/// How many of the records have ever been given out.
size_t ce_reader_records_used(void);

/// The record at `index`.
static inline void *ce_reader_at(size_t index) {
    return &ce_reader_records[index * CE_READER_RECORD_BYTES];
}

/// The calling thread's record; NULL when there are too many threads.
static inline void *ce_reader_current(void) {
    void *own = ce_reader_own;
    return own ? own : ce_reader_join();
}

/// The index of a record.
static inline size_t ce_reader_index(const void *record) { return ((const uint64_t *)record)[1]; }

/// Keeps the compiler from moving memory accesses across it; says nothing to the processor.
static inline void ce_compiler_barrier(void) { __asm__ volatile("" ::: "memory"); }

/// Whether `ce_barrier_all` works here.
bool ce_barrier_all_available(void);

/// A full memory barrier on every running thread of this process.
void ce_barrier_all(void);

#endif

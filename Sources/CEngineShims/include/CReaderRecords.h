#ifndef CREADERRECORDS_H
#define CREADERRECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CE_READER_RECORDS_MAX 4096
#define CE_READER_RECORD_BYTES 128

// A record is the reading state of one thread, on two cache lines of its own, because processors
// fetch lines in pairs. It has two 64-bit words: the depth (its users access it atomically) and the
// record's index.

extern unsigned char ce_reader_records[CE_READER_RECORDS_MAX * CE_READER_RECORD_BYTES];

#if defined(__APPLE__)
extern _Thread_local void *ce_reader_own;
#else
extern _Thread_local void *ce_reader_own __attribute__((tls_model("initial-exec")));
#endif

/// Assigns a record to the calling thread until the thread ends; returns NULL if none is left.
void *ce_reader_join(void);

/// The number of records that were ever assigned.
size_t ce_reader_records_used(void);

/// The record at `index`.
static inline void *ce_reader_at(size_t index) {
    return &ce_reader_records[index * CE_READER_RECORD_BYTES];
}

/// The calling thread's record; NULL if there are too many threads.
static inline void *ce_reader_current(void) {
    void *own = ce_reader_own;
    return own ? own : ce_reader_join();
}

/// The index of a record.
static inline size_t ce_reader_index(const void *record) { return ((const uint64_t *)record)[1]; }

/// Keeps the compiler from moving memory accesses across this call; emits no instruction.
static inline void ce_compiler_barrier(void) { __asm__ volatile("" ::: "memory"); }

/// Whether this system supports `ce_barrier_all`.
bool ce_barrier_all_available(void);

/// Executes a full memory barrier on every running thread of this process; returns `false` if the
/// system refuses.
bool ce_barrier_all(void);

#endif

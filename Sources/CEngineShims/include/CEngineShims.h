#ifndef CENGINESHIMS_H
#define CENGINESHIMS_H

#include <stddef.h>
#include <stdint.h>

#include "CReaderRecords.h"

/// CRC-32C (Castagnoli) of `count` bytes, continuing from `crc` (0 to start).
/// Uses the processor's wide products without carries, or its CRC instruction, if it has them.
uint32_t ce_crc32c(uint32_t crc, const void *_Nullable bytes, size_t count);

/// Reads up to `count` bytes that are already in the page cache, without waiting for the device.
/// Returns the number of bytes or -errno: -EAGAIN if nothing is cached, -EOPNOTSUPP if the file
/// system does not support this.
intptr_t ce_pread_cached(int file, void *_Nullable bytes, size_t count, int64_t offset);

/// The flag of `open` that keeps reads from updating access times, which would add to the cost of a
/// small read; 0 if the system has no such flag.
extern const int ce_open_no_access_times;

/// Allocates `count` bytes for the file; returns 0 or -errno.
int ce_preallocate(int file, int64_t count);

/// Waits until the file's bytes are on the device; returns 0 or -errno.
int ce_sync_data(int file);

/// A mutex with a condition; a wait may have a timeout on the monotonic clock.
typedef struct ce_gate ce_gate;
ce_gate *_Nonnull ce_gate_make(void);
void ce_gate_free(ce_gate *_Nonnull gate);
void ce_gate_lock(ce_gate *_Nonnull gate);
void ce_gate_unlock(ce_gate *_Nonnull gate);
void ce_gate_signal(ce_gate *_Nonnull gate);
void ce_gate_broadcast(ce_gate *_Nonnull gate);
/// Waits for a signal, at most `nanoseconds` (UINT64_MAX: no limit). May return spuriously.
void ce_gate_wait(ce_gate *_Nonnull gate, uint64_t nanoseconds);

#endif

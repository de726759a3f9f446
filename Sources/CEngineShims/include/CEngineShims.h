#ifndef CENGINESHIMS_H
#define CENGINESHIMS_H

#include <stddef.h>
#include <stdint.h>

#include "CReaderRecords.h"

/// CRC-32C (Castagnoli) of `count` bytes, continuing from `crc` (0 to start).
/// Uses the processor's instruction where there is one.
uint32_t ce_crc32c(uint32_t crc, const void *_Nullable bytes, size_t count);

/// Reads up to `count` bytes that are already in the page cache, without waiting for the device.
/// Returns how many, or -errno; -EAGAIN: not cached; -EOPNOTSUPP: this file system cannot say.
intptr_t ce_pread_cached(int file, void *_Nullable bytes, size_t count, int64_t offset);

/// The flag of `open` that spares reads the noting of access times, a twentieth of a small read;
/// 0 where there is none.
extern const int ce_open_no_access_times;

/// Gives the file `count` bytes of room; 0, or -errno.
int ce_preallocate(int file, int64_t count);

/// Waits until the file's bytes are on the device; 0, or -errno.
int ce_sync_data(int file);

/// A mutex with a condition, waited for with a timeout on the monotonic clock.
typedef struct ce_gate ce_gate;
ce_gate *_Nonnull ce_gate_make(void);
void ce_gate_free(ce_gate *_Nonnull gate);
void ce_gate_lock(ce_gate *_Nonnull gate);
void ce_gate_unlock(ce_gate *_Nonnull gate);
void ce_gate_signal(ce_gate *_Nonnull gate);
void ce_gate_broadcast(ce_gate *_Nonnull gate);
/// Waits for a signal, at most `nanoseconds` (UINT64_MAX: without an end). Spurious returns happen.
void ce_gate_wait(ce_gate *_Nonnull gate, uint64_t nanoseconds);

#endif

#ifndef CENGINESHIMS_H
#define CENGINESHIMS_H

#include <stddef.h>
#include <stdint.h>

/// CRC-32C (Castagnoli) of `count` bytes, continuing from `crc` (0 to start).
/// Uses the processor's instruction where there is one.
uint32_t ce_crc32c(uint32_t crc, const void *bytes, size_t count);

#endif

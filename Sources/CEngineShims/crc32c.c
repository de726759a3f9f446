#include "CEngineShims.h"
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

static uint32_t table[256];

__attribute__((constructor)) static void fill_table(void) {
    for (uint32_t index = 0; index < 256; index++) {
        uint32_t value = index;
        for (int bit = 0; bit < 8; bit++) value = (value >> 1) ^ (0x82F63B78u & -(value & 1));
        table[index] = value;
    }
}

static uint32_t crc_by_table(uint32_t crc, const uint8_t *bytes, size_t count) {
    while (count--) crc = table[(crc ^ *bytes++) & 0xFF] ^ (crc >> 8);
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2")))
static uint32_t crc_by_instruction(uint32_t crc, const uint8_t *bytes, size_t count) {
    uint64_t wide = crc, word;
    for (; count >= 8; bytes += 8, count -= 8) {
        memcpy(&word, bytes, 8);
        wide = _mm_crc32_u64(wide, word);
    }
    crc = (uint32_t)wide;
    for (; count; bytes++, count--) crc = _mm_crc32_u8(crc, *bytes);
    return crc;
}
#endif

uint32_t ce_crc32c(uint32_t crc, const void *bytes, size_t count) {
    crc = ~crc;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) return ~crc_by_instruction(crc, bytes, count);
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
    const uint8_t *byte = bytes;
    uint64_t word;
    for (; count >= 8; byte += 8, count -= 8) {
        memcpy(&word, byte, 8);
        crc = __crc32cd(crc, word);
    }
    for (; count; byte++, count--) crc = __crc32cb(crc, *byte);
    return ~crc;
#endif
    return ~crc_by_table(crc, bytes, count);
}

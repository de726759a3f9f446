#include "CEngineShims.h"
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

#define POLYNOMIAL 0x82F63B78u

// The CRC instruction has a latency of three cycles and a throughput of one per cycle. Therefore
// three runs of a block are checksummed in parallel and joined by shifting the earlier ones over
// the length of the later ones (Mark Adler, https://stackoverflow.com/a/17646775).
#define LONG_RUN 4096
#define SHORT_RUN 256

static uint32_t table[256];
static uint32_t long_shift[4][256];
static uint32_t short_shift[4][256];

static uint32_t times(const uint32_t *matrix, uint32_t vector) {
    uint32_t sum = 0;
    for (; vector; vector >>= 1, matrix++)
        if (vector & 1) sum ^= *matrix;
    return sum;
}

static void square(uint32_t *result, const uint32_t *matrix) {
    for (int bit = 0; bit < 32; bit++) result[bit] = times(matrix, matrix[bit]);
}

// Fills `shift` with the operator that appends `count` zero bytes; `count` is a power of two.
static void fill_shift(uint32_t shift[4][256], size_t count) {
    uint32_t even[32], odd[32];
    odd[0] = POLYNOMIAL;
    for (int bit = 1; bit < 32; bit++) odd[bit] = 1u << (bit - 1);
    square(even, odd);  // two zero bits
    square(odd, even);  // four
    const uint32_t *operator = odd;
    for (; count; count >>= 1) {  // eight, doubled for every bit of `count`
        uint32_t *next = operator == odd ? even : odd;
        square(next, operator);
        operator = next;
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int place = 0; place < 4; place++)
            shift[place][byte] = times(operator, byte << (8 * place));
}

static uint32_t shifted(uint32_t shift[4][256], uint32_t crc) {
    return shift[0][crc & 0xFF] ^ shift[1][(crc >> 8) & 0xFF] ^ shift[2][(crc >> 16) & 0xFF] ^
           shift[3][crc >> 24];
}

__attribute__((constructor)) static void fill_tables(void) {
    for (uint32_t index = 0; index < 256; index++) {
        uint32_t value = index;
        for (int bit = 0; bit < 8; bit++) value = (value >> 1) ^ (POLYNOMIAL & -(value & 1));
        table[index] = value;
    }
    fill_shift(long_shift, LONG_RUN);
    fill_shift(short_shift, SHORT_RUN);
}

static uint32_t crc_by_table(uint32_t crc, const uint8_t *bytes, size_t count) {
    while (count--) crc = table[(crc ^ *bytes++) & 0xFF] ^ (crc >> 8);
    return crc;
}

#if defined(__x86_64__)
#define HAS_INSTRUCTION 1
#define TARGET __attribute__((target("sse4.2")))
TARGET static inline uint64_t step8(uint64_t crc, const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return _mm_crc32_u64(crc, word);
}
TARGET static inline uint64_t step1(uint64_t crc, uint8_t byte) {
    return _mm_crc32_u8((uint32_t)crc, byte);
}
static int is_available(void) { return __builtin_cpu_supports("sse4.2"); }
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#define HAS_INSTRUCTION 1
#define TARGET
static inline uint64_t step8(uint64_t crc, const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return __crc32cd((uint32_t)crc, word);
}
static inline uint64_t step1(uint64_t crc, uint8_t byte) { return __crc32cb((uint32_t)crc, byte); }
static int is_available(void) { return 1; }
#endif

#ifdef HAS_INSTRUCTION
TARGET static uint64_t crc_of_runs(uint64_t crc, const uint8_t *bytes, size_t run,
                                   uint32_t shift[4][256]) {
    uint64_t second = 0, third = 0;
    const uint8_t *end = bytes + run;
    for (; bytes < end; bytes += 8) {
        crc = step8(crc, bytes);
        second = step8(second, bytes + run);
        third = step8(third, bytes + 2 * run);
    }
    crc = shifted(shift, (uint32_t)crc) ^ (uint32_t)second;
    return shifted(shift, (uint32_t)crc) ^ (uint32_t)third;
}

TARGET static uint32_t crc_by_instruction(uint32_t start, const uint8_t *bytes, size_t count) {
    uint64_t crc = start;
    for (; count >= 3 * LONG_RUN; bytes += 3 * LONG_RUN, count -= 3 * LONG_RUN)
        crc = crc_of_runs(crc, bytes, LONG_RUN, long_shift);
    for (; count >= 3 * SHORT_RUN; bytes += 3 * SHORT_RUN, count -= 3 * SHORT_RUN)
        crc = crc_of_runs(crc, bytes, SHORT_RUN, short_shift);
    for (; count >= 8; bytes += 8, count -= 8) crc = step8(crc, bytes);
    for (; count; bytes++, count--) crc = step1(crc, *bytes);
    return (uint32_t)crc;
}
#endif

// Folding takes a quarter of the instruction's time: a product without carries moves bits over a
// distance d, as x^d mod P does, so that 256 bytes are added to the next 256 in a few cycles
// (V. Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel 2009).
#if defined(__x86_64__)
#define HAS_FOLDING 1
#define FOLDING __attribute__((target("avx512f,avx512vl,vpclmulqdq,pclmul,sse4.2")))
#define FOLDED_MIN 256

enum { over_2048_bits, over_512_bits, over_384_bits, over_256_bits, over_128_bits, fold_count };

// The factors for the low and the high half of 128 bits.
static uint64_t folds[fold_count][2];
static int can_fold;

// x^bits mod P; both have their lowest power in the highest bit.
static uint32_t power(unsigned bits) {
    uint32_t result = 0x80000000u;
    while (bits--) result = (result >> 1) ^ (POLYNOMIAL & -(result & 1));
    return result;
}

__attribute__((constructor)) static void fill_folds(void) {
    static const unsigned distances[fold_count] = {2048, 512, 384, 256, 128};
    for (int index = 0; index < fold_count; index++) {
        folds[index][0] = power(distances[index] + 31);
        folds[index][1] = power(distances[index] - 33);
    }
    can_fold = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("sse4.2");
}

FOLDING static inline __m128i factors(int distance) {
    return _mm_loadu_si128((const __m128i *)folds[distance]);
}

FOLDING static inline __m512i fold(__m512i bits, __m512i factors, __m512i next) {
    const __m512i low = _mm512_clmulepi64_epi128(bits, factors, 0x00);
    const __m512i high = _mm512_clmulepi64_epi128(bits, factors, 0x11);
    return _mm512_ternarylogic_epi64(low, high, next, 0x96);  // the sum of all three
}

FOLDING static inline __m128i fold_lane(__m128i bits, int distance, __m128i next) {
    const __m128i low = _mm_clmulepi64_si128(bits, factors(distance), 0x00);
    const __m128i high = _mm_clmulepi64_si128(bits, factors(distance), 0x11);
    return _mm_xor_si128(next, _mm_xor_si128(low, high));
}

// Takes at least FOLDED_MIN bytes.
FOLDING static uint32_t crc_by_folding(uint32_t crc, const uint8_t *bytes, size_t count) {
    __m512i a = _mm512_loadu_si512(bytes), b = _mm512_loadu_si512(bytes + 64);
    __m512i c = _mm512_loadu_si512(bytes + 128), d = _mm512_loadu_si512(bytes + 192);
    a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
    bytes += 256, count -= 256;
    const __m512i far = _mm512_broadcast_i32x4(factors(over_2048_bits));
    for (; count >= 256; bytes += 256, count -= 256) {
        a = fold(a, far, _mm512_loadu_si512(bytes));
        b = fold(b, far, _mm512_loadu_si512(bytes + 64));
        c = fold(c, far, _mm512_loadu_si512(bytes + 128));
        d = fold(d, far, _mm512_loadu_si512(bytes + 192));
    }
    const __m512i near = _mm512_broadcast_i32x4(factors(over_512_bits));
    d = fold(fold(fold(a, near, b), near, c), near, d);
    for (; count >= 64; bytes += 64, count -= 64) d = fold(d, near, _mm512_loadu_si512(bytes));
    __m128i rest = _mm512_extracti32x4_epi32(d, 3);
    rest = fold_lane(_mm512_extracti32x4_epi32(d, 0), over_384_bits, rest);
    rest = fold_lane(_mm512_extracti32x4_epi32(d, 1), over_256_bits, rest);
    rest = fold_lane(_mm512_extracti32x4_epi32(d, 2), over_128_bits, rest);
    uint64_t sum = _mm_crc32_u64(0, (uint64_t)_mm_extract_epi64(rest, 0));
    sum = _mm_crc32_u64(sum, (uint64_t)_mm_extract_epi64(rest, 1));
    return crc_by_instruction((uint32_t)sum, bytes, count);
}
#endif

uint32_t ce_crc32c(uint32_t crc, const void *bytes, size_t count) {
    crc = ~crc;
#ifdef HAS_FOLDING
    if (count >= FOLDED_MIN && can_fold) return ~crc_by_folding(crc, bytes, count);
#endif
#ifdef HAS_INSTRUCTION
    if (is_available()) return ~crc_by_instruction(crc, bytes, count);
#endif
    return ~crc_by_table(crc, bytes, count);
}

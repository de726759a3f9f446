#include "CReaderRecords.h"
#include <pthread.h>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#define BARRIER_EXPEDITED (1 << 3)
#define BARRIER_REGISTER_EXPEDITED (1 << 4)
#endif

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_THREAD_SANITIZER 1
#endif
#endif

__attribute__((aligned(CE_READER_RECORD_BYTES))) unsigned char
    ce_reader_records[CE_READER_RECORDS_MAX * CE_READER_RECORD_BYTES];
#if defined(__APPLE__)
_Thread_local void *ce_reader_own;
#else
_Thread_local void *ce_reader_own __attribute__((tls_model("initial-exec")));
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t exit_key;
static uint32_t free_records[CE_READER_RECORDS_MAX];
static size_t free_count, used_count;
static bool has_key, has_barrier;

static void leave(void *record) {
    pthread_mutex_lock(&lock);
    free_records[free_count++] = (uint32_t)ce_reader_index(record);
    pthread_mutex_unlock(&lock);
    ce_reader_own = NULL;
}

__attribute__((constructor)) static void set_up(void) {
    has_key = pthread_key_create(&exit_key, leave) == 0;
#if defined(__linux__) && !defined(UNDER_THREAD_SANITIZER)
    has_barrier = syscall(SYS_membarrier, BARRIER_REGISTER_EXPEDITED, 0, 0) == 0;
#endif
}

void *ce_reader_join(void) {
    if (!has_key) return NULL;
    pthread_mutex_lock(&lock);
    void *record = NULL;
    if (free_count) {
        record = ce_reader_at(free_records[--free_count]);
    } else if (used_count < CE_READER_RECORDS_MAX) {
        record = ce_reader_at(used_count);
        ((uint64_t *)record)[1] = used_count;
        __atomic_store_n(&used_count, used_count + 1, __ATOMIC_SEQ_CST);
    }
    pthread_mutex_unlock(&lock);
    if (record && pthread_setspecific(exit_key, record) != 0) {
        leave(record);
        return NULL;
    }
    ce_reader_own = record;
    return record;
}

size_t ce_reader_records_used(void) { return __atomic_load_n(&used_count, __ATOMIC_SEQ_CST); }

bool ce_barrier_all_available(void) { return has_barrier; }

bool ce_barrier_all(void) {
#if defined(__linux__)
    return syscall(SYS_membarrier, BARRIER_EXPEDITED, 0, 0) == 0;
#else
    return false;
#endif
}

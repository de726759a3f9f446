#define _GNU_SOURCE
#include "CEngineShims.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <sys/types.h>
#include <unistd.h>

intptr_t ce_pread_cached(int file, void *bytes, size_t count, int64_t offset) {
#if defined(__linux__) && defined(RWF_NOWAIT)
    struct iovec part = {.iov_base = bytes, .iov_len = count};
    ssize_t got = preadv2(file, &part, 1, offset, RWF_NOWAIT);
    return got < 0 ? -errno : got;
#else
    (void)file, (void)bytes, (void)count, (void)offset;
    return -EOPNOTSUPP;
#endif
}

#ifdef O_NOATIME
const int ce_open_no_access_times = O_NOATIME;
#else
const int ce_open_no_access_times = 0;
#endif

int ce_preallocate(int file, int64_t count) {
#if defined(__linux__)
    if (fallocate(file, 0, 0, count) == 0) return 0;
    if (errno != EOPNOTSUPP) return -errno;
#elif defined(F_PREALLOCATE)
    fstore_t room = {F_ALLOCATEALL, F_PEOFPOSMODE, 0, count, 0};
    if (fcntl(file, F_PREALLOCATE, &room) != 0 && errno == ENOSPC) return -ENOSPC;
#endif
    return ftruncate(file, count) == 0 ? 0 : -errno;
}

int ce_sync_data(int file) {
#if defined(__linux__)
    return fdatasync(file) == 0 ? 0 : -errno;
#elif defined(F_FULLFSYNC)
    if (fcntl(file, F_FULLFSYNC) == 0) return 0;
    return fsync(file) == 0 ? 0 : -errno;
#else
    return fsync(file) == 0 ? 0 : -errno;
#endif
}

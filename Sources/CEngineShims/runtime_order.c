// Tells ThreadSanitizer about the order that Swift's runtime establishes between threads.
//
// The runtime's libraries are built without the sanitizer. If they order two threads without
// telling the sanitizer, it reports a race on the data that this order guards. Each function here
// replaces one of the runtime's, calls it, and tells the sanitizer. Other builds contain none of
// this code.
// docs/decisions/0024-order-that-the-sanitizer-does-not-see.md has the proofs.

#if defined(__linux__) && defined(__has_feature)
#if __has_feature(thread_sanitizer)

#define _GNU_SOURCE
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <stdbool.h>
#include <stdint.h>

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *self

// The runtime's function of that name, behind the replacement.
#define BEHIND(type, name) ((type *)dlsym(RTLD_NEXT, name))

// A contended mutex: `_MutexHandle._lockSlow`, `_tryLockSlow`, `_unlockSlow`.
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

typedef SWIFT void lock_function(uint32_t thread, SELF);
typedef SWIFT bool try_lock_function(SELF);
typedef SWIFT void unlock_function(SELF);

lock_function ce_mutex_lock __asm__(LOCK);
try_lock_function ce_mutex_try_lock __asm__(TRY_LOCK);
unlock_function ce_mutex_unlock __asm__(UNLOCK);

SWIFT void ce_mutex_lock(uint32_t thread, SELF) {
    BEHIND(lock_function, LOCK)(thread, self);
    __tsan_acquire(self);
}

SWIFT bool ce_mutex_try_lock(SELF) {
    bool is_locked = BEHIND(try_lock_function, TRY_LOCK)(self);
    if (is_locked) __tsan_acquire(self);
    return is_locked;
}

SWIFT void ce_mutex_unlock(SELF) {
    __tsan_release(self);
    BEHIND(unlock_function, UNLOCK)(self);
}

// A continuation that is resumed before its task waits for it. The resuming thread releases the
// task, but the task continues at once and acquires nothing. So it continues through `go_on`.
#define ASYNC __attribute__((swiftasynccall))
#define CONTEXT __attribute__((swift_async_context)) struct continuation *continuation

// The layout that the compiler and the runtime agree on. The runtime uses only the lowest flags, so
// the others can hold an address.
struct continuation {
    void *parent;
    ASYNC void (*resume)(CONTEXT);
    uint64_t flags;
};
#define FLAG_BITS 16

typedef ASYNC void await_function(struct continuation *continuation);
SWIFT void *swift_task_getCurrent(void);

static ASYNC void go_on(CONTEXT) {
    __tsan_acquire(swift_task_getCurrent());
    ASYNC void (*resume)(CONTEXT) = (void *)(continuation->flags >> FLAG_BITS);
    return resume(continuation);
}

ASYNC void swift_continuation_await(struct continuation *continuation) {
    continuation->flags |= (uint64_t)continuation->resume << FLAG_BITS;
    continuation->resume = go_on;
    return BEHIND(await_function, "swift_continuation_await")(continuation);
}

// An array, or another value of shared storage, that one thread drops and another then changes in
// place. The one releases its reference; the other finds that it is alone, and acquires what the one
// did before. The runtime takes other values than pointers for objects, and ignores them.
typedef void release_function(void *object);
typedef void release_many_function(void *object, uint32_t count);
typedef bool is_alone_function(void *object);

// Any thread may be the first to look behind, and all find the same.
#define UNSEEN __attribute__((no_sanitize("thread")))

static bool is_object(void *object) { return (intptr_t)object > 0; }

UNSEEN void swift_release(void *object) {
    static release_function *behind;
    if (!behind) behind = BEHIND(release_function, "swift_release");
    if (is_object(object)) __tsan_release(object);
    behind(object);
}

UNSEEN void swift_release_n(void *object, uint32_t count) {
    static release_many_function *behind;
    if (!behind) behind = BEHIND(release_many_function, "swift_release_n");
    if (is_object(object)) __tsan_release(object);
    behind(object, count);
}

UNSEEN bool swift_isUniquelyReferenced_nonNull_native(void *object) {
    static is_alone_function *behind;
    if (!behind) behind = BEHIND(is_alone_function, "swift_isUniquelyReferenced_nonNull_native");
    bool is_alone = behind(object);
    if (is_alone) __tsan_acquire(object);
    return is_alone;
}

#endif
#endif

// A preloaded library that writes the call stacks of a program's allocations.
//
// Each line is a folded stack with its number of allocations, the input of a flame graph
// (outer;middle;inner 42). Stacks are walked by frame pointers. Every SAMPLE-th allocation of a
// thread is sampled and counts SAMPLE times; the sampler's own allocations do not count. The
// environment variable ALLOCATION_STACKS names the file.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 7, DEPTH_MAX = 48, SLOTS = 1 << 14 };

// One distinct stack: written once, and counted thereafter, always under the lock.
struct stack {
    uint64_t hash;
    uint64_t count;
    int depth;
    void *frames[DEPTH_MAX];
};

static struct stack table[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t dropped;

static _Thread_local unsigned seen;
static _Thread_local int is_inside;
static _Thread_local uintptr_t stack_low, stack_high;

// bench-cli counts allocations in its own malloc, which calls these three functions of glibc, so the
// sampler replaces these. In other programs it sees only calls of these three.
typedef void *(*malloc_function)(size_t);
typedef void *(*calloc_function)(size_t, size_t);
typedef void *(*realloc_function)(void *, size_t);
static malloc_function real_malloc;
static calloc_function real_calloc;
static realloc_function real_realloc;

static void resolve(void) {
    real_malloc = (malloc_function)dlsym(RTLD_NEXT, "__libc_malloc");
    real_calloc = (calloc_function)dlsym(RTLD_NEXT, "__libc_calloc");
    real_realloc = (realloc_function)dlsym(RTLD_NEXT, "__libc_realloc");
    if (real_malloc == NULL || real_calloc == NULL || real_realloc == NULL) abort();
}

static void find_stack_bounds(void) {
    pthread_attr_t attributes;
    void *low;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
        stack_low = (uintptr_t)low;
        stack_high = stack_low + size;
    }
    pthread_attr_destroy(&attributes);
}

// Collects frames from the innermost outwards and stops at an address outside this thread's stack.
static int walk(void **frames, void *start) {
    int depth = 0;
    uintptr_t frame = (uintptr_t)start;
    while (depth < DEPTH_MAX && frame >= stack_low && frame + 16 <= stack_high && frame % 8 == 0) {
        void *caller = ((void **)frame)[1];
        uintptr_t next = ((uintptr_t *)frame)[0];
        if (caller == NULL) break;
        frames[depth++] = caller;
        if (next <= frame) break;
        frame = next;
    }
    return depth;
}

static void count_stack(void **frames, int depth) {
    uint64_t hash = 14695981039346656037u;
    for (int index = 0; index < depth; index++)
        hash = (hash ^ (uint64_t)(uintptr_t)frames[index]) * 1099511628211u;
    if (hash == 0) hash = 1;
    pthread_mutex_lock(&lock);
    for (unsigned probe = 0; probe < 64; probe++) {
        struct stack *slot = &table[(hash + probe) % SLOTS];
        if (slot->hash == 0) {
            slot->hash = hash;
            slot->depth = depth;
            memcpy(slot->frames, frames, sizeof(void *) * (size_t)depth);
        }
        if (slot->hash == hash) {
            slot->count += SAMPLE;
            pthread_mutex_unlock(&lock);
            return;
        }
    }
    dropped += SAMPLE;
    pthread_mutex_unlock(&lock);
}

static void look(void *frame) {
    if (++seen % SAMPLE != 0 || is_inside) return;
    is_inside = 1;
    if (stack_high == 0) find_stack_bounds();
    void *frames[DEPTH_MAX];
    int depth = walk(frames, frame);
    if (depth > 0) count_stack(frames, depth);
    is_inside = 0;
}

void *__libc_malloc(size_t size) {
    if (real_malloc == NULL) resolve();
    look(__builtin_frame_address(0));
    return real_malloc(size);
}

void *__libc_calloc(size_t count, size_t size) {
    if (real_calloc == NULL) resolve();
    look(__builtin_frame_address(0));
    return real_calloc(count, size);
}

void *__libc_realloc(void *block, size_t size) {
    if (real_realloc == NULL) resolve();
    look(__builtin_frame_address(0));
    return real_realloc(block, size);
}

static void print_frame(FILE *file, void *address) {
    Dl_info info;
    // The address is a return address, so one byte before it lies in the call.
    if (dladdr((char *)address - 1, &info) == 0) {
        fprintf(file, "[unknown]");
    } else if (info.dli_sname != NULL) {
        fprintf(file, "%s", info.dli_sname);
    } else {
        // The symbol is not exported; perf/profile looks it up by its offset in the file.
        const char *name = strrchr(info.dli_fname, '/');
        fprintf(file, "%lx@%s", (unsigned long)((char *)address - 1 - (char *)info.dli_fbase),
                name != NULL ? name + 1 : info.dli_fname);
    }
}

__attribute__((destructor)) static void write_stacks(void) {
    const char *path = getenv("ALLOCATION_STACKS");
    if (path == NULL) return;
    is_inside = 1;
    FILE *file = fopen(path, "w");
    if (file == NULL) return;
    for (unsigned index = 0; index < SLOTS; index++) {
        const struct stack *stack = &table[index];
        if (stack->hash == 0) continue;
        for (int frame = stack->depth - 1; frame >= 0; frame--) {
            print_frame(file, stack->frames[frame]);
            if (frame > 0) fputc(';', file);
        }
        fprintf(file, " %llu\n", (unsigned long long)stack->count);
    }
    if (dropped > 0) fprintf(file, "[more stacks than are kept] %llu\n", (unsigned long long)dropped);
    fclose(file);
}

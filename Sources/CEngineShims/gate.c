#define _GNU_SOURCE
#include "CEngineShims.h"
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct ce_gate {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
};

ce_gate *ce_gate_make(void) {
    ce_gate *gate = malloc(sizeof *gate);
    if (!gate) abort();
    pthread_mutex_init(&gate->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
#if defined(__linux__)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
    pthread_cond_init(&gate->condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return gate;
}

void ce_gate_free(ce_gate *gate) {
    pthread_cond_destroy(&gate->condition);
    pthread_mutex_destroy(&gate->mutex);
    free(gate);
}

void ce_gate_lock(ce_gate *gate) { pthread_mutex_lock(&gate->mutex); }
void ce_gate_unlock(ce_gate *gate) { pthread_mutex_unlock(&gate->mutex); }
void ce_gate_signal(ce_gate *gate) { pthread_cond_signal(&gate->condition); }
void ce_gate_broadcast(ce_gate *gate) { pthread_cond_broadcast(&gate->condition); }

void ce_gate_wait(ce_gate *gate, uint64_t nanoseconds) {
    if (nanoseconds == UINT64_MAX) {
        pthread_cond_wait(&gate->condition, &gate->mutex);
        return;
    }
#if defined(__linux__)
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t total = (uint64_t)until.tv_nsec + nanoseconds;
    until.tv_sec += (time_t)(total / 1000000000u);
    until.tv_nsec = (long)(total % 1000000000u);
    pthread_cond_timedwait(&gate->condition, &gate->mutex, &until);
#else
    struct timespec length = {(time_t)(nanoseconds / 1000000000u),
                              (long)(nanoseconds % 1000000000u)};
    pthread_cond_timedwait_relative_np(&gate->condition, &gate->mutex, &length);
#endif
}

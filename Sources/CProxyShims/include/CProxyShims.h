#ifndef CPROXYSHIMS_H
#define CPROXYSHIMS_H

#include <stdint.h>
#include <sys/socket.h>

// Readiness of sockets, with one interface for epoll (Linux) and kqueue (elsewhere): both directions
// are watched once, edge-triggered, and each socket has a token of 64 bits.

enum {
    CP_READABLE = 1,
    CP_WRITABLE = 2,
    CP_GONE = 4, // the connection was reset or has an error
    CP_ENDED = 8, // the peer has sent its last byte, which may still be unread
};

struct cp_event {
    uint64_t token;
    uint32_t flags;
};

/// Opens a poller; returns -1 with errno on failure.
int cp_poller_open(void);
/// Watches `fd` for both directions, edge-triggered, for as long as it is open.
int cp_poller_watch(int poller, int fd, uint64_t token);
/// Watches `fd` for input, level-triggered.
int cp_poller_watch_input(int poller, int fd, uint64_t token);
/// Stops watching `fd`.
int cp_poller_forget(int poller, int fd);
/// Waits for events; returns their number, 0 after `timeout_ms`, or -1 with errno.
int cp_poller_wait(int poller, struct cp_event *events, int capacity, int timeout_ms);

/// Opens a waker that `cp_waker_ring` makes readable: watch `fds[0]`, ring `fds[1]`.
int cp_waker_open(int fds[2]);
void cp_waker_ring(int fd);
void cp_waker_drain(int fd);

/// Accepts a connection as a non-blocking, close-on-exec socket, and writes the address of its peer,
/// which the socket itself no longer tells once the peer has reset it; returns -1 with errno on failure.
int cp_accept(int listener, struct sockaddr_storage *peer);
/// Refuses new connections at a listener; those that have begun can still be accepted.
/// With `is_tcp` the first packets are dropped, so that clients retry later, perhaps at a
/// successor.
/// Returns -1 if the system does not support this.
int cp_refuse_new(int listener, int is_tcp);
/// Makes a socket non-blocking and close-on-exec.
int cp_prepare(int fd);
/// Whether the peer of a non-blocking socket has sent nothing that is unread, not even its end.
int cp_is_silent(int fd);
/// An object of the calling thread, which the thread sets and clears itself.
void cp_set_current(void *object);
void *cp_current(void);

#endif

#ifndef CPROXYSHIMS_H
#define CPROXYSHIMS_H

#include <stdint.h>

// Readiness of sockets: epoll on Linux, kqueue elsewhere, behind one face. Swift's C library
// modules do not show epoll, and its event structure is packed, which Swift cannot say.

enum {
    CP_READABLE = 1,
    CP_WRITABLE = 2,
    CP_GONE = 4, // reset, or an error
    CP_ENDED = 8, // the peer has sent its last byte; it may not be read yet
};

struct cp_event {
    uint64_t token;
    uint32_t flags;
};

/// Opens a poller; -1 with errno.
int cp_poller_open(void);
/// Watches `fd` for both directions, edge-triggered, for as long as it is open.
int cp_poller_watch(int poller, int fd, uint64_t token);
/// Watches `fd` for input, level-triggered.
int cp_poller_watch_input(int poller, int fd, uint64_t token);
/// Ends watching.
int cp_poller_forget(int poller, int fd);
/// Waits for events; how many, 0 after `timeout_ms`, -1 with errno.
int cp_poller_wait(int poller, struct cp_event *events, int capacity, int timeout_ms);

/// Opens something that `cp_waker_ring` makes readable: `fds[0]` to watch, `fds[1]` to ring.
int cp_waker_open(int fds[2]);
void cp_waker_ring(int fd);
void cp_waker_drain(int fd);

/// Accepts a connection as a non-blocking, close-on-exec socket; -1 with errno.
int cp_accept(int listener);
/// Makes a socket non-blocking and close-on-exec.
int cp_prepare(int fd);
/// Flags for send: no signal when the peer is gone.
int cp_send_flags(void);

#endif

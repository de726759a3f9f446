// The calls that wait for sockets on Linux, and the one that tells what a socket still holds; the C
// library's Swift module leaves them out.
#ifndef CACHE_ENGINE_CEPOLL_H
#define CACHE_ENGINE_CEPOLL_H

#ifdef __linux__
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

/// The bytes that a socket holds because its peer has not taken them; -1 with errno if the system
/// does not tell.
static inline int cepoll_held_bytes(int socket) {
    int count = 0;
    // Under this name SIOCOUTQ needs no headers of the kernel.
    return ioctl(socket, TIOCOUTQ, &count) < 0 ? -1 : count;
}
#endif

#endif

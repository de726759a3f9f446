#define _GNU_SOURCE
#include "CProxyShims.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCH 512

#ifdef __linux__

#include <linux/filter.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

int cp_poller_open(void) { return epoll_create1(EPOLL_CLOEXEC); }

int cp_poller_watch(int poller, int fd, uint64_t token) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};
    event.data.u64 = token;
    return epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
}

int cp_poller_watch_input(int poller, int fd, uint64_t token) {
    struct epoll_event event = {.events = EPOLLIN};
    event.data.u64 = token;
    return epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
}

int cp_poller_forget(int poller, int fd) { return epoll_ctl(poller, EPOLL_CTL_DEL, fd, 0); }

int cp_poller_wait(int poller, struct cp_event *events, int capacity, int timeout_ms) {
    struct epoll_event batch[BATCH];
    int count = epoll_wait(poller, batch, capacity < BATCH ? capacity : BATCH, timeout_ms);
    for (int i = 0; i < count; i++) {
        uint32_t got = batch[i].events;
        events[i].token = batch[i].data.u64;
        events[i].flags = (got & (EPOLLIN | EPOLLRDHUP) ? CP_READABLE : 0)
            | (got & EPOLLRDHUP ? CP_ENDED : 0) | (got & EPOLLOUT ? CP_WRITABLE : 0) | (got & (EPOLLHUP | EPOLLERR) ? CP_GONE : 0);
    }
    return count;
}

int cp_waker_open(int fds[2]) {
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    fds[0] = fds[1] = fd;
    return fd < 0 ? -1 : 0;
}

void cp_waker_ring(int fd) {
    uint64_t one = 1;
    // A full counter or pipe already wakes the reader.
    ssize_t ignored = write(fd, &one, sizeof one);
    (void)ignored;
}

void cp_waker_drain(int fd) {
    uint64_t count;
    ssize_t ignored = read(fd, &count, sizeof count);
    (void)ignored;
}

int cp_accept(int listener, struct sockaddr_storage *peer) {
    socklen_t size = sizeof *peer;
    return accept4(listener, (struct sockaddr *)peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int cp_refuse_new(int listener, int is_tcp) {
    // New connections are refused; waiting ones can still be accepted.
    if (!is_tcp) return shutdown(listener, SHUT_RD);
    // A listener's filter sees TCP headers: byte 13 holds the flags, SYN is 2 and ACK is 16.
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x12),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    return setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

#else

#include <sys/event.h>
#include <sys/time.h>

int cp_poller_open(void) { return kqueue(); }

static int change(int poller, int fd, int filter, int flags, uint64_t token) {
    struct kevent event;
    EV_SET(&event, fd, filter, flags, 0, 0, (void *)(uintptr_t)token);
    return kevent(poller, &event, 1, 0, 0, 0);
}

int cp_poller_watch(int poller, int fd, uint64_t token) {
    if (change(poller, fd, EVFILT_READ, EV_ADD | EV_CLEAR, token) < 0) return -1;
    return change(poller, fd, EVFILT_WRITE, EV_ADD | EV_CLEAR, token);
}

int cp_poller_watch_input(int poller, int fd, uint64_t token) {
    return change(poller, fd, EVFILT_READ, EV_ADD, token);
}

int cp_poller_forget(int poller, int fd) {
    change(poller, fd, EVFILT_READ, EV_DELETE, 0);
    change(poller, fd, EVFILT_WRITE, EV_DELETE, 0);
    return 0;
}

int cp_poller_wait(int poller, struct cp_event *events, int capacity, int timeout_ms) {
    struct kevent batch[BATCH];
    struct timespec limit = {timeout_ms / 1000, (timeout_ms % 1000) * 1000000L};
    int count = kevent(poller, 0, 0, batch, capacity < BATCH ? capacity : BATCH,
        timeout_ms < 0 ? 0 : &limit);
    for (int i = 0; i < count; i++) {
        events[i].token = (uint64_t)(uintptr_t)batch[i].udata;
        events[i].flags = (batch[i].filter == EVFILT_READ ? CP_READABLE : 0)
            | (batch[i].filter == EVFILT_READ && batch[i].flags & EV_EOF ? CP_ENDED : 0)
            | (batch[i].filter == EVFILT_WRITE ? CP_WRITABLE : 0)
            | (batch[i].flags & EV_EOF && batch[i].fflags ? CP_GONE : 0);
    }
    return count;
}

int cp_waker_open(int fds[2]) {
    if (pipe(fds) < 0) return -1;
    return cp_prepare(fds[0]) < 0 || cp_prepare(fds[1]) < 0 ? -1 : 0;
}

void cp_waker_ring(int fd) {
    char one = 1;
    ssize_t ignored = write(fd, &one, 1);
    (void)ignored;
}

void cp_waker_drain(int fd) {
    char bytes[256];
    while (read(fd, bytes, sizeof bytes) == sizeof bytes) {}
}

int cp_accept(int listener, struct sockaddr_storage *peer) {
    socklen_t size = sizeof *peer;
    int fd = accept(listener, (struct sockaddr *)peer, &size);
    if (fd < 0) return -1;
    int one = 1;
    setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &one, sizeof one);
    if (cp_prepare(fd) == 0) return fd;
    close(fd);
    return -1;
}

int cp_refuse_new(int listener, int is_tcp) {
    (void)listener;
    (void)is_tcp;
    return -1;
}

#endif

int cp_prepare(int fd) {
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) return -1;
    return fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int cp_is_silent(int fd) {
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

static _Thread_local void *current;

void cp_set_current(void *object) { current = object; }

void *cp_current(void) { return current; }

// An open-loop load: requests leave on a schedule whether or not earlier ones have come back, and
// time is counted from the moment they were due. One thread, keep-alive connections.
//
// usage: load PORT PATH REQUESTS_PER_SECOND SECONDS CONNECTIONS
// prints: sent p50 p90 p99 p99.9 max (microseconds)
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct connection {
    int fd;
    uint64_t due;    // when its request was due, 0 while idle
    size_t expected; // bytes of the answer still to come, 0 while its head is unknown
    size_t got;
    char head[4096];
};

// 64 buckets per power of two: within 1.6 percent.
static uint64_t buckets[64 * 64], total, worst;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static unsigned bucket_of(uint64_t v) {
    if (v < 64) return (unsigned)v;
    unsigned shift = 57 - (unsigned)__builtin_clzll(v);
    return (shift + 1) * 64 + (unsigned)(v >> shift & 63);
}

static double value_of(unsigned b) {
    return b < 64 ? b : (double)((uint64_t)(64 + b % 64) << (b / 64 - 1));
}

static double percentile(double p) {
    uint64_t wanted = (uint64_t)(p * (double)total), seen = 0;
    for (unsigned b = 0; b < 64 * 64; b++)
        if ((seen += buckets[b]) > wanted) return value_of(b) / 1000;
    return (double)worst / 1000;
}

static void record(uint64_t ns) {
    buckets[bucket_of(ns)]++;
    total++;
    if (ns > worst) worst = ns;
}

static int open_connection(int port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&a, sizeof a)) return perror("load"), exit(1), -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

// True when the whole answer is there.
static int receive(struct connection *c) {
    static char sink[1 << 17];
    for (;;) {
        int in_head = c->expected == 0;
        char *to = in_head ? c->head + c->got : sink;
        size_t room = in_head ? sizeof c->head - 1 - c->got : sizeof sink;
        ssize_t n = recv(c->fd, to, room, MSG_DONTWAIT);
        if (n <= 0) {
            if (n < 0 && errno == EAGAIN) return 0;
            fprintf(stderr, "load: connection ended\n");
            exit(1);
        }
        c->got += (size_t)n;
        if (in_head) {
            c->head[c->got] = 0;
            char *end = strstr(c->head, "\r\n\r\n");
            if (!end) continue;
            char *length = strcasestr(c->head, "content-length:");
            if (!length) {
                fprintf(stderr, "load: no length\n");
                exit(1);
            }
            c->expected = (size_t)(end + 4 - c->head) + strtoul(length + 15, 0, 10);
        }
        if (c->got >= c->expected) return 1;
    }
}

int main(int argc, char **argv) {
    if (argc != 6) return fprintf(stderr, "usage: load PORT PATH RATE SECONDS CONNECTIONS\n"), 2;
    double rate = atof(argv[3]), seconds = atof(argv[4]);
    int count = atoi(argv[5]), idle = 0;
    char request[512];
    int size = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", argv[2]);
    struct connection *all = calloc((size_t)count, sizeof *all), **free_list = calloc((size_t)count, sizeof *free_list);
    int poller = epoll_create1(0);
    for (int i = 0; i < count; i++) {
        all[i].fd = open_connection(atoi(argv[1]));
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &all[i]};
        epoll_ctl(poller, EPOLL_CTL_ADD, all[i].fd, &e);
        free_list[idle++] = &all[i];
    }
    uint64_t start = now_ns(), sent = 0, wanted = (uint64_t)(rate * seconds);
    double gap = 1e9 / rate;
    struct epoll_event events[256];
    while (total < wanted) {
        uint64_t now = now_ns();
        if (now - start > (uint64_t)((seconds * 3 + 5) * 1e9)) break;
        while (sent < wanted && idle > 0) {
            uint64_t due = start + (uint64_t)((double)sent * gap);
            if (due > now) break;
            struct connection *c = free_list[--idle];
            c->due = due;
            c->got = c->expected = 0;
            if (send(c->fd, request, (size_t)size, MSG_NOSIGNAL) != size) return perror("load"), 1;
            sent++;
        }
        int n = epoll_wait(poller, events, 256, 0);
        for (int i = 0; i < n; i++) {
            struct connection *c = events[i].data.ptr;
            if (!c->due || !receive(c)) continue;
            record(now_ns() - c->due);
            c->due = 0;
            free_list[idle++] = c;
        }
    }
    printf("%llu %.1f %.1f %.1f %.1f %.1f\n", (unsigned long long)total, percentile(0.5),
        percentile(0.9), percentile(0.99), percentile(0.999), (double)worst / 1000);
    return total == wanted ? 0 : 1;
}

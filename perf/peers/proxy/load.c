// An open-loop load on one thread with keep-alive connections. Requests are sent on a schedule,
// whether or not earlier ones have been answered. Latency is measured from the scheduled time.
//
// The paths are the lines of a file, requested in turn. With a rate of 0, each path is requested
// once, as fast as possible. A response with another status than 200 ends the program with status
// 1; responses that are still missing after twice the time end it with status 3.
//
// usage: load PORT FILE REQUESTS_PER_SECOND SECONDS CONNECTIONS
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
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct connection {
    int fd;
    uint64_t due;    // scheduled time of its request, 0 while idle
    size_t expected; // total bytes of the response, 0 while its head is incomplete
    size_t got;
    char head[4096];
};

// 64 buckets per power of two: an error below 1.6 percent.
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

// Returns true if the complete response has arrived.
static int receive(struct connection *c) {
    static char sink[1 << 17];
    for (;;) {
        int in_head = c->expected == 0;
        char *to = in_head ? c->head + c->got : sink;
        size_t room = in_head ? sizeof c->head - 1 - c->got : sizeof sink;
        ssize_t n = recv(c->fd, to, room, MSG_DONTWAIT);
        if (n <= 0) {
            if (n < 0 && errno == EAGAIN) return 0;
            fprintf(stderr, "load: the server closed a connection\n");
            exit(1);
        }
        c->got += (size_t)n;
        if (in_head) {
            c->head[c->got] = 0;
            char *end = strstr(c->head, "\r\n\r\n");
            if (!end) continue;
            if (strncmp(c->head, "HTTP/1.1 200", 12)) {
                fprintf(stderr, "load: the response is not a 200: %.*s\n",
                    (int)strcspn(c->head, "\r"), c->head);
                exit(1);
            }
            char *length = strcasestr(c->head, "content-length:");
            if (!length) {
                fprintf(stderr, "load: a response has no Content-Length\n");
                exit(1);
            }
            c->expected = (size_t)(end + 4 - c->head) + strtoul(length + 15, 0, 10);
        }
        if (c->got >= c->expected) return 1;
    }
}

// The requests for the lines of a file, one after the other.
struct requests {
    char *text;
    size_t *ends, count;
};

static struct requests read_requests(const char *path) {
    struct requests all = {0};
    FILE *file = fopen(path, "r");
    if (!file) perror("load"), exit(1);
    char line[1024];
    size_t used = 0, room = 0, ends = 0;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (used + sizeof line + 64 > room) all.text = realloc(all.text, room = room * 2 + 4096);
        if (all.count == ends)
            all.ends = realloc(all.ends, (ends = ends * 2 + 64) * sizeof *all.ends);
        used += (size_t)sprintf(all.text + used, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", line);
        all.ends[all.count++] = used;
    }
    fclose(file);
    if (!all.count) fprintf(stderr, "load: %s has no paths\n", path), exit(1);
    return all;
}

static void send_request(struct connection *c, struct requests *all, uint64_t number) {
    size_t at = number % all->count, from = at ? all->ends[at - 1] : 0;
    ssize_t size = (ssize_t)(all->ends[at] - from);
    c->got = c->expected = 0;
    if (send(c->fd, all->text + from, (size_t)size, MSG_NOSIGNAL) != size) perror("load"), exit(1);
}

// Waits for responses until the next request is due. It sleeps, because the origin of the server
// may run on the same core.
static int wait_until(int poller, struct epoll_event *events, uint64_t due) {
    uint64_t now = now_ns(), rest = due > now ? due - now : 0;
    struct timespec t = {(time_t)(rest / 1000000000u), (long)(rest % 1000000000u)};
    return epoll_pwait2(poller, events, 256, &t, 0);
}

int main(int argc, char **argv) {
    if (argc != 6) return fprintf(stderr, "usage: load PORT FILE RATE SECONDS CONNECTIONS\n"), 2;
    struct requests requests = read_requests(argv[2]);
    double rate = atof(argv[3]), seconds = atof(argv[4]), gap = rate > 0 ? 1e9 / rate : 0;
    int count = atoi(argv[5]), idle = 0;
    prctl(PR_SET_TIMERSLACK, 1);
    struct connection *all = calloc((size_t)count, sizeof *all);
    struct connection **free_list = calloc((size_t)count, sizeof *free_list);
    int poller = epoll_create1(0);
    for (int i = 0; i < count; i++) {
        all[i].fd = open_connection(atoi(argv[1]));
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &all[i]};
        epoll_ctl(poller, EPOLL_CTL_ADD, all[i].fd, &e);
        free_list[idle++] = &all[i];
    }
    uint64_t start = now_ns(), sent = 0;
    uint64_t wanted = rate > 0 ? (uint64_t)(rate * seconds) : requests.count;
    uint64_t last = start + (uint64_t)((seconds * 2 + 1) * 1e9);
    struct epoll_event events[256];
    while (total < wanted && now_ns() < last) {
        uint64_t due = last;
        while (sent < wanted && idle > 0) {
            due = start + (uint64_t)((double)sent * gap);
            if (due > now_ns()) break;
            struct connection *c = free_list[--idle];
            c->due = due;
            send_request(c, &requests, sent++);
            due = last;
        }
        int n = wait_until(poller, events, due);
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
    if (total != wanted)
        fprintf(stderr, "load: only %llu of %llu responses arrived in time\n", (unsigned long long)total,
            (unsigned long long)wanted);
    return total == wanted ? 0 : 3;
}

// A bare epoll responder: the lower bound of every HTTP server on this machine. It reads once, checks
// for the end of a head and writes a fixed response. It implements no other part of HTTP.
//
// usage: bare PORT BODY_BYTES [304]
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char *answer;
static size_t answer_bytes;

static void prepare(size_t body, int is_304) {
    char date[64];
    time_t now = time(0);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime(&now));
    int head = sprintf(answer,
        "HTTP/1.1 %s\r\nContent-Type: application/octet-stream\r\n"
        "Cache-Control: max-age=86400\r\nETag: \"0123456789abcdef\"\r\nDate: %s\r\n"
        "Age: 1\r\nContent-Length: %zu\r\n\r\n", is_304 ? "304 Not Modified" : "200 OK", date, body);
    memset(answer + head, 'x', body);
    answer_bytes = (size_t)head + body;
}

static void send_all(int fd) {
    size_t sent = 0;
    while (sent < answer_bytes) {
        ssize_t count = send(fd, answer + sent, answer_bytes - sent, MSG_NOSIGNAL);
        if (count > 0) sent += (size_t)count;
        else if (errno == EAGAIN) usleep(50);
        else return;
    }
}

int main(int argc, char **argv) {
    if (argc != 3 && argc != 4) return fprintf(stderr, "usage: bare PORT BODY_BYTES [304]\n"), 2;
    size_t body = strtoul(argv[2], 0, 10);
    answer = malloc(body + 512);
    prepare(body, argc == 4);

    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1024)) {
        perror("bare");
        return 1;
    }
    int poller = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[256];
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    char bytes[16384];
    for (;;) {
        int count = epoll_wait(poller, events, 256, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                int client = accept4(listener, 0, 0, SOCK_NONBLOCK);
                if (client < 0) continue;
                event.events = EPOLLIN;
                event.data.fd = client;
                epoll_ctl(poller, EPOLL_CTL_ADD, client, &event);
                continue;
            }
            ssize_t got = read(fd, bytes, sizeof bytes);
            if (got <= 0) {
                if (got == 0 || errno != EAGAIN) close(fd);
                continue;
            }
            if (got >= 4 && memcmp(bytes + got - 4, "\r\n\r\n", 4) == 0) send_all(fd);
        }
    }
}

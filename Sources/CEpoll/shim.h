// The calls that wait for sockets on Linux; the C library's Swift module leaves them out.
#ifndef CACHE_ENGINE_CEPOLL_H
#define CACHE_ENGINE_CEPOLL_H

#ifdef __linux__
#include <sys/epoll.h>
#include <sys/eventfd.h>
#endif

#endif

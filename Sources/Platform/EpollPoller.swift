#if os(Linux)
    internal import CEpoll

    /// Waits for sockets by epoll; the cost depends only on the number of ready sockets.
    ///
    /// One thread owns the poller. Any thread may call `wake` of its waker until the poller is
    /// closed.
    package final class EpollPoller {
        private let epoll: Int32
        private let wakeup: Int32
        private var ready = [epoll_event](repeating: epoll_event(), count: 256)

        package init() throws(PollerFailure) {
            epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
            wakeup = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
            guard epoll >= 0, wakeup >= 0, control(EPOLL_CTL_ADD, wakeup, EPOLLIN.rawValue) else {
                let failure = PollerFailure()
                close()
                throw failure
            }
        }

        /// A handle that other threads may use until the poller is closed.
        package var waker: SocketWaker { SocketWaker(descriptor: wakeup) }

        /// Replaces the interest in a socket; an empty interest ends the watch.
        package func watch(_ socket: Int32, for interest: SocketInterest) {
            guard !interest.isEmpty else {
                _ = control(EPOLL_CTL_DEL, socket, 0)
                return
            }
            var events: UInt32 = 0
            if interest.contains(.readable) { events |= EPOLLIN.rawValue }
            if interest.contains(.writable) { events |= EPOLLOUT.rawValue }
            if !control(EPOLL_CTL_MOD, socket, events) {
                _ = control(EPOLL_CTL_ADD, socket, events)
            }
        }

        /// Waits for at most `timeoutMilliseconds` and visits the ready sockets; -1 waits without a
        /// limit.
        package func wait(timeoutMilliseconds: Int32, _ visit: (SocketReadiness) -> Void) {
            let count = epoll_wait(epoll, &ready, Int32(ready.count), timeoutMilliseconds)
            for index in 0..<Int(max(0, count)) {
                let event = ready[index]
                guard event.data.fd != wakeup else {
                    var value: UInt64 = 0
                    _ = read(wakeup, &value, 8)
                    continue
                }
                let broken = EPOLLERR.rawValue | EPOLLHUP.rawValue
                visit(
                    SocketReadiness(
                        socket: event.data.fd,
                        isReadable: event.events & (EPOLLIN.rawValue | broken) != 0,
                        isWritable: event.events & EPOLLOUT.rawValue != 0,
                        isBroken: event.events & broken != 0
                    )
                )
            }
        }

        package func close() {
            if epoll >= 0 { _ = Platform.close(epoll) }
            if wakeup >= 0 { _ = Platform.close(wakeup) }
        }

        private func control(_ operation: Int32, _ socket: Int32, _ events: UInt32) -> Bool {
            var event = epoll_event()
            event.events = events
            event.data.fd = socket
            return epoll_ctl(epoll, operation, socket, &event) == 0
        }
    }
#endif

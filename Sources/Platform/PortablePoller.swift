/// Waits for sockets by poll(2), which every system has; the cost depends on the number of all
/// sockets.
///
/// One thread owns the poller. Any thread may call `wake` of its waker until the poller is closed.
package final class PortablePoller {
    private var interests: [Int32: SocketInterest] = [:]
    private let wakeIn: Int32
    private let wakeOut: Int32

    package init() throws(PollerFailure) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw PollerFailure() }
        wakeIn = ends[0]
        wakeOut = ends[1]
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
    }

    package var waker: SocketWaker { SocketWaker(descriptor: wakeOut) }

    package func watch(_ socket: Int32, for interest: SocketInterest) {
        interests[socket] = interest.isEmpty ? nil : interest
    }

    package func wait(timeoutMilliseconds: Int32, _ visit: (SocketReadiness) -> Void) {
        var polled = [pollfd(fd: wakeIn, events: Int16(POLLIN), revents: 0)]
        for (socket, interest) in interests {
            var events: Int16 = 0
            if interest.contains(.readable) { events |= Int16(POLLIN) }
            if interest.contains(.writable) { events |= Int16(POLLOUT) }
            polled.append(pollfd(fd: socket, events: events, revents: 0))
        }
        guard poll(&polled, numericCast(polled.count), timeoutMilliseconds) > 0 else { return }
        if polled[0].revents != 0 {
            var bytes = [UInt8](repeating: 0, count: 64)
            while read(wakeIn, &bytes, bytes.count) == bytes.count {}
        }
        let broken = Int16(POLLERR) | Int16(POLLHUP) | Int16(POLLNVAL)
        for entry in polled.dropFirst() where entry.revents != 0 {
            visit(
                SocketReadiness(
                    socket: entry.fd,
                    isReadable: entry.revents & (Int16(POLLIN) | broken) != 0,
                    isWritable: entry.revents & Int16(POLLOUT) != 0,
                    isBroken: entry.revents & broken != 0
                )
            )
        }
    }

    package func close() {
        for end in [wakeIn, wakeOut] {
            _ = Platform.close(end)
        }
    }
}

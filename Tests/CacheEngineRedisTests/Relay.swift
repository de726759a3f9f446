import CacheTestSupport
import Platform
import Synchronization

/// A TCP relay in front of a server, whose connections a test can cut or slow down.
///
/// Two threads move the bytes of each connection; they end with it.
final class Relay: Sendable {
    /// The delay of what the server sends: each piece of so many bytes waits for so long.
    struct Pace: Sendable {
        let milliseconds: Int32
        var pieceBytes = Int.max
    }

    private struct State: Sendable {
        var target: UInt16
        var pace: Pace?
        var isCut = false
        var sockets: Set<Int32> = []
    }

    let port: UInt16
    private let listener: Int32
    private let state: Mutex<State>

    init(to target: UInt16) throws {
        (listener, port) = try LoopbackSocket.listen()
        state = Mutex(State(target: target))
        PlainThread.start { [weak self, listener] in
            while true {
                let inner = accept(listener, nil, nil)
                guard inner >= 0 else { return }
                self?.serve(inner) ?? { _ = close(inner) }()
            }
        }
    }

    deinit {
        cut()
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    var url: String { "redis://127.0.0.1:\(port)/test" }

    /// Ends every connection, and lets no other live.
    func cut() {
        state.withLock { state in
            state.isCut = true
            for socket in state.sockets { shutdown(socket, Int32(SHUT_RDWR)) }
        }
    }

    /// Serves connections again, perhaps to another server.
    func heal(to target: UInt16? = nil) {
        state.withLock { state in
            state.isCut = false
            if let target { state.target = target }
        }
    }

    /// Delays the server's replies from now on, also on the connections that there are.
    func slow(_ pace: Pace?) { state.withLock { $0.pace = pace } }

    private func serve(_ client: Int32) {
        let target = state.withLock { $0.isCut ? nil : $0.target }
        guard let target, let server = LoopbackSocket.connect(to: target) else {
            close(client)
            return
        }
        let isAdmitted = state.withLock { state in
            guard !state.isCut else { return false }
            state.sockets.formUnion([client, server])
            return true
        }
        guard isAdmitted else {
            close(client)
            close(server)
            return
        }
        let left = Countdown(2)
        for (from, to) in [(client, server), (server, client)] {
            PlainThread.start { [weak self] in
                Self.move(from, to) { from == server ? self?.state.withLock { $0.pace } : nil }
                shutdown(from, Int32(SHUT_RDWR))
                shutdown(to, Int32(SHUT_RDWR))
                guard left.isLast() else { return }
                self?.forget(client, server)
                close(client)
                close(server)
            }
        }
    }

    private func forget(_ one: Int32, _ other: Int32) {
        state.withLock { $0.sockets.subtract([one, other]) }
    }

    private static func move(_ from: Int32, _ to: Int32, _ pace: () -> Pace?) {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = recv(from, &buffer, buffer.count, 0)
            guard count > 0 else { return }
            var done = 0
            while done < count {
                var piece = count - done
                if let pace = pace() {
                    _ = poll(nil, 0, pace.milliseconds)
                    piece = min(piece, pace.pieceBytes)
                }
                let sent = buffer.withUnsafeBytes {
                    send(to, $0.baseAddress.map { $0 + done }, piece, sendsNoSignal)
                }
                guard sent > 0 else { return }
                done += sent
            }
        }
    }
}

/// Counts down to the last of several threads.
private final class Countdown: Sendable {
    private let left: Atomic<Int>

    init(_ count: Int) { left = Atomic(count) }

    func isLast() -> Bool {
        left.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0
    }
}

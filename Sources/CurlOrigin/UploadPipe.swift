internal import CacheEngine
internal import Synchronization

/// Carries the content of one request from its stream to the event thread, a window at a time.
///
/// Content that is in memory needs no task; for a stream one task of the pipe reads ahead until
/// the window is full. It begins when content is first asked for: what could not be sent is not
/// touched, and another origin can have it. `close` ends it.
final class UploadPipe: Sendable {
    private struct Shared: Sendable {
        var window: UploadWindow
        /// What has not begun to be read.
        var unread: BodyStream?
        var pump: Task<Void, Never>?
        var room: CheckedContinuation<Void, Never>?
        var isClosed = false

        mutating func takeRoom() -> CheckedContinuation<Void, Never>? {
            defer { room = nil }
            return room
        }
    }

    /// The length to announce, or nil when it is not known.
    let count: Int?
    /// The whole content, when it can be sent a second time.
    private let whole: ByteChunk?
    private let windowBytesMax: Int
    private let onBytes: @Sendable () -> Void
    private let shared: Mutex<Shared>

    init(_ chunk: ByteChunk) {
        count = chunk.count
        whole = chunk
        windowBytesMax = 0
        onBytes = {}
        shared = Mutex(Shared(window: Self.window(chunk)))
    }

    init(
        _ body: BodyStream,
        count: Int?,
        windowBytesMax: Int,
        onBytes: @escaping @Sendable () -> Void
    ) {
        self.count = count
        self.windowBytesMax = windowBytesMax
        self.onBytes = onBytes
        whole = nil
        shared = Mutex(Shared(window: UploadWindow(count: count), unread: body))
    }

    var failure: (any Error)? { shared.withLock { $0.window.failure } }

    /// Fills `buffer` with what comes next; on the event thread.
    func fill(_ buffer: UnsafeMutableRawBufferPointer) -> UploadWindow.Filling {
        let (filling, room) = shared.withLock { shared in
            if let body = shared.unread.take(), !shared.isClosed {
                shared.pump = Task { await self.run(body) }
            }
            let filling = shared.window.fill(buffer)
            return (filling, shared.window.heldBytes < windowBytesMax ? shared.takeRoom() : nil)
        }
        room?.resume()
        return filling
    }

    /// Goes back to the first byte; false when it is gone.
    func rewind() -> Bool {
        guard let whole else { return false }
        shared.withLock { $0.window = Self.window(whole) }
        return true
    }

    /// Nothing more is wanted.
    func close() {
        let (pump, room) = shared.withLock { shared in
            shared.isClosed = true
            return (shared.pump, shared.takeRoom())
        }
        pump?.cancel()
        room?.resume()
    }

    private func run(_ body: BodyStream) async {
        do {
            for try await chunk in body {
                change { $0.append(chunk) }
                await waitForRoom()
                if Task.isCancelled { return }
            }
            change { $0.end() }
        } catch {
            change { $0.fail(error) }
        }
    }

    private func change(_ change: (inout UploadWindow) -> Void) {
        let wakes = shared.withLock { shared in
            change(&shared.window)
            return shared.window.takeSenderHold()
        }
        if wakes { onBytes() }
    }

    private func waitForRoom() async {
        await withCheckedContinuation { continuation in
            let isRoom = shared.withLock { shared in
                if shared.isClosed || shared.window.heldBytes < windowBytesMax { return true }
                shared.room = continuation
                return false
            }
            if isRoom { continuation.resume() }
        }
    }

    private static func window(_ chunk: ByteChunk) -> UploadWindow {
        var window = UploadWindow(count: chunk.count)
        window.append(chunk)
        window.end()
        return window
    }
}

package import CacheEngine
internal import Synchronization

/// Passes the content of one request from its stream to the event thread, one window at a time.
///
/// Content in memory needs no task. For a stream, one task reads ahead until the window is full.
/// The task starts when content is first requested, so the stream of a request that could not be
/// sent stays unread, and another origin can use it. `close` ends the task.
package final class UploadPipe: Sendable {
    private struct Shared: Sendable {
        var window: UploadWindow
        /// The stream, until its reading begins.
        var unread: BodyStream?
        var pump: Task<Void, Never>?
        var room: UnsafeContinuation<Void, Never>?
        var isClosed = false

        mutating func takeRoom() -> UnsafeContinuation<Void, Never>? {
            defer { room = nil }
            return room
        }
    }

    /// The content after the head of a request.
    package enum Content: Sendable {
        case none
        case chunk(ByteChunk)
        case stream(BodyStream, count: Int?)

        /// Tells the owner of a stream that bytes of it are on their way.
        func noteMovement() {
            if case .stream(let body, _) = self { body.noteMovement() }
        }
    }

    /// The length to announce; `nil` if it is not known.
    package let count: Int?
    /// The whole content, if it can be sent a second time.
    private let whole: ByteChunk?
    private let windowBytesMax: Int
    private let onBytes: @Sendable () -> Void
    private let shared: Mutex<Shared>

    /// `nil` if there is no content.
    package convenience init?(
        _ content: Content,
        windowBytesMax: Int,
        onBytes: @escaping @Sendable () -> Void
    ) {
        switch content {
        case .none: return nil
        case .chunk(let chunk): self.init(chunk)
        case .stream(let body, let count):
            self.init(body, count: count, windowBytesMax: windowBytesMax, onBytes: onBytes)
        }
    }

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

    /// Whether the content can be sent a second time.
    package var isRepeatable: Bool { whole != nil }

    package var failure: (any Error)? { shared.withLock { $0.window.failure } }

    /// Whether the sender waits for the source, and not the source for the sender.
    package var isSourceSilent: Bool { shared.withLock { $0.window.isSenderHeld } }

    /// Whether the last byte has been passed on, and the source or the announced length says that
    /// it was the last.
    package var isDrained: Bool { shared.withLock { $0.window.isDrained } }

    /// Fills `buffer` with the next content; called on the event thread.
    package func fill(_ buffer: UnsafeMutableRawBufferPointer) -> UploadWindow.Filling {
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

    /// Restarts at the first byte; returns `false` if that byte is no longer available.
    package func rewind() -> Bool {
        guard let whole else { return false }
        shared.withLock { $0.window = Self.window(whole) }
        return true
    }

    /// Ends the pipe: no more content is needed.
    package func close() {
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
        await withUnsafeContinuation { continuation in
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

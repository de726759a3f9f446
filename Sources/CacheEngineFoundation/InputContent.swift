internal import CacheEngine
internal import Dispatch
internal import Foundation

/// The content of a request, read from an `InputStream`.
///
/// `@unchecked Sendable`: the stream and the count are used on `queue` alone.
final class InputContent: BodySource, @unchecked Sendable {
    private let stream: InputStream
    private let onRead: @Sendable (_ bytes: Int64, _ total: Int64) -> Void
    private var total: Int64 = 0
    /// Reading blocks, so it has a queue and with it a thread of its own.
    private let queue = DispatchQueue(label: "InputContent")

    private static let pieceBytesMax = 65_536

    /// Creates a source that calls `onRead` for each piece.
    init(
        _ stream: InputStream,
        onRead: @escaping @Sendable (_ bytes: Int64, _ total: Int64) -> Void = { _, _ in }
    ) {
        self.stream = stream
        self.onRead = onRead
    }

    func next() async throws -> ByteChunk? {
        try await withUnsafeThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try self.read() }) }
        }
    }

    /// A stream that was never read is left to its owner.
    func cancel() {
        queue.async { if self.stream.streamStatus != .notOpen { self.stream.close() } }
    }

    private func read() throws -> ByteChunk? {
        if stream.streamStatus == .notOpen { stream.open() }
        var count = 0
        var data = Data(count: Self.pieceBytesMax)
        data.withUnsafeMutableBytes { bytes in
            guard let start = bytes.bindMemory(to: UInt8.self).baseAddress else { return }
            count = stream.read(start, maxLength: bytes.count)
        }
        guard count >= 0 else {
            let reason = stream.streamError.map { String(describing: $0) } ?? "unknown"
            throw CacheError(
                .requestInvalid,
                detail: "The content of the request cannot be read: \(PlainText.excerpt(reason))"
            )
        }
        guard count > 0 else {
            stream.close()
            return nil
        }
        total += Int64(count)
        onRead(Int64(count), total)
        return ByteChunk(data.prefix(count))
    }
}

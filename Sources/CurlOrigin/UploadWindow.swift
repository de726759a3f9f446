internal import CacheEngine

/// The part of a request's content that waits to be sent.
///
/// Invariants:
/// 1. `waitingBytes` is the number of bytes in `chunks` from `offset` on.
/// 2. No more bytes than the announced count are passed on.
package struct UploadWindow: Sendable {
    /// The result of filling a buffer.
    package enum Filling: Equatable, Sendable {
        case bytes(Int)
        case end
        case held
        case broken
    }

    private let count: Int?
    private var chunks: [ByteChunk] = []
    private var offset = 0
    private var sentBytes = 0
    private(set) var waitingBytes = 0
    private(set) var hasEnded = false
    private(set) var failure: (any Error)?
    /// Whether the sender was told that no content is available yet.
    private(set) var isSenderHeld = false

    init(count: Int?) { self.count = count }

    /// The waiting bytes plus the overhead of their chunks.
    var heldBytes: Int { waitingBytes + chunks.count * ByteChunk.overheadBytes }

    /// Whether all content has been passed on: the announced bytes, or all up to an end in order.
    var isDrained: Bool {
        guard waitingBytes == 0 else { return false }
        if Mutant.takesFailedContentForWhole.isOn, hasEnded { return true }
        if let count { return sentBytes == count }
        return hasEnded && failure == nil
    }

    mutating func append(_ chunk: ByteChunk) {
        guard !chunk.isEmpty, !hasEnded else { return }
        chunks.append(chunk)
        waitingBytes += chunk.count
    }

    mutating func end() {
        if let count, failure == nil, sentBytes + waitingBytes != count {
            failure = CacheError(
                .requestInvalid,
                detail: "The request's content has \(sentBytes + waitingBytes) bytes, "
                    + "but \(count) were announced"
            )
        }
        hasEnded = true
    }

    mutating func fail(_ error: any Error) {
        failure = failure ?? error
        hasEnded = true
    }

    /// Whether the sender must be woken; `true` once for each hold.
    mutating func takeSenderHold() -> Bool {
        defer { isSenderHeld = false }
        return isSenderHeld
    }

    mutating func fill(_ buffer: UnsafeMutableRawBufferPointer) -> Filling {
        if failure != nil { return .broken }
        var filled = 0
        var used = 0
        while filled < buffer.count, used < chunks.count {
            let chunk = chunks[used]
            let part = min(buffer.count - filled, chunk.count - offset)
            chunk.withUnsafeBytes { source in
                buffer.copy(.init(rebasing: source[offset..<offset + part]), at: filled)
            }
            filled += part
            offset += part
            if offset == chunk.count {
                used += 1
                offset = 0
            }
        }
        chunks.removeFirst(used)
        waitingBytes -= filled
        sentBytes += filled
        if let count, sentBytes > count {
            failure = CacheError(
                .requestInvalid,
                detail: "The request's content is longer than the announced \(count) bytes"
            )
            return .broken
        }
        if filled > 0 { return .bytes(filled) }
        if hasEnded { return .end }
        isSenderHeld = true
        return .held
    }
}

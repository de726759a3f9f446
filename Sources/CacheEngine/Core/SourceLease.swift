import Synchronization

/// Shares a body source among its readers, and cancels it when the last of them is released.
package final class SourceLease: Sendable {
    private let source: any BodySource
    private let hasEnded = Atomic(false)

    package init(_ source: any BodySource) { self.source = source }

    package func next() async throws -> ByteChunk? {
        if hasEnded.load(ordering: .acquiring) { return nil }
        do {
            if let chunk = try await source.next() { return chunk }
            hasEnded.store(true, ordering: .releasing)
            return nil
        } catch {
            hasEnded.store(true, ordering: .releasing)
            throw error
        }
    }

    deinit {
        if !hasEnded.load(ordering: .acquiring) { source.cancel() }
    }
}

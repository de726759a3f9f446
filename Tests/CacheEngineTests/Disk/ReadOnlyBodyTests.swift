import CacheTestSupport
import Foundation
import Testing

@testable import CacheEngine

/// A file with a large body that may not be written, or not be opened for now, is not damaged.
@Suite struct ReadOnlyBodyTests {
    private let files = FaultyFileSystem(seed: 1)

    /// The kernel remounts a file system read-only after an error.
    @Test func bodyIsReadThoughTheFileSystemTurnedReadOnly() async throws {
        let (store, _) = try await LargeBodyTests.closedStore(files)
        let tier = try await store.open()
        files.plan.isReadOnly = true
        for _ in 0..<2 { #expect(try await store.version(1) == 4) }
        #expect(tier.statistics.recordsDamaged == 0)
        files.plan = .init()
        await store.close()
    }

    @Test func bodyThatMayNotBeOpenedIsKept() async throws {
        let (store, path) = try await LargeBodyTests.closedStore(files)
        _ = try await store.open()
        files.plan.forbidden = [path]
        for _ in 0..<2 { #expect(try await store.version(1) == nil) }
        files.plan = .init()
        #expect(try await store.version(1) == 4)
        await store.close()
    }

    /// The opening can tell no more about the file than a reader.
    @Test func bodyThatMayNotBeOpenedAtAnOpeningIsKept() async throws {
        let (store, path) = try await LargeBodyTests.closedStore(files)
        let bytes = try #require(files.bytes(of: path)).count
        files.plan.forbidden = [path]
        let tier = try await store.open()
        #expect(tier.recovery.damaged == 0)
        #expect(tier.statistics.fileBytes >= bytes)
        #expect(try await store.version(1) == nil)
        files.plan = .init()
        #expect(try await store.version(1) == 4)
        await store.close()
    }

    @Test func bodyWhoseFileIsGoneIsGivenUp() async throws {
        let (store, path) = try await LargeBodyTests.closedStore(files)
        let tier = try await store.open()
        files.erase(path)
        #expect(try await store.version(1) == nil)
        #expect(try await store.read(1) == nil)
        #expect(tier.statistics.recordsDamaged == 1)
        await store.close()
    }

    @Test func openForReadingNeedsNoPermissionToWrite() throws {
        let system = SystemFileSystem()
        let path = FileManager.default.temporaryDirectory.path() + "/read-" + UUID().uuidString
        #expect(throws: FileFault.notFound) { _ = try system.open(path, .reading) }
        let written = try system.open(path, .createNew)
        defer {
            system.close(written)
            try? system.unlink(path)
        }
        let bytes: [UInt8] = [1, 2, 3]
        let count = try bytes.withUnsafeBytes { try system.write(written, from: $0, at: 0) }
        #expect(count == 3)
        let read = try system.open(path, .reading)
        defer { system.close(read) }
        var found = [UInt8](repeating: 0, count: 3)
        let foundCount = try found.withUnsafeMutableBytes { try system.read(read, into: $0, at: 0) }
        #expect(foundCount == 3 && found == bytes)
        #expect(throws: FileFault.self) {
            _ = try bytes.withUnsafeBytes { try system.write(read, from: $0, at: 0) }
        }
    }
}

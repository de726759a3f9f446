import CacheTestSupport
import Dispatch
import Testing

@testable import CacheEngine

/// Reads that last longer than the segment of their record.
@Suite(.timeLimit(.minutes(1))) struct ReclaimedReadTests {
    /// A read on the caller's thread, or one that waits for the device.
    enum Kind: CaseIterable, CustomTestStringConvertible {
        case cached, waiting

        var testDescription: String { "\(self)" }
    }

    private let files = FaultyFileSystem(seed: 1)
    private let gate = DispatchSemaphore(value: 0)
    private let executor = ThreadExecutor()

    /// A purge is forgotten when its record leaves the log, and a read that began before may still be
    /// under way then.
    @Test(arguments: Kind.allCases)
    func readThatOutlivesItsSegmentFindsNothingPurged(_ kind: Kind) async throws {
        let store = try await self.store(kind)
        let tier = try #require(store.tier)
        let read = try await beginRead(in: store)
        _ = try await tier.removeAll(in: .tag("t"))
        try await reclaimEverySegment(of: store)
        gate.signal()
        #expect(await read.value == nil)
        await store.close()
        executor.stop()
    }

    /// A copy that moved is found at its new place.
    @Test(arguments: Kind.allCases)
    func readThatOutlivesItsSegmentFindsWhatWasKept(_ kind: Kind) async throws {
        let store = try await self.store(kind, flags: .pinned)
        let read = try await beginRead(in: store)
        try await reclaimEverySegment(of: store)
        gate.signal()
        #expect(await read.value == 0)
        await store.close()
        executor.stop()
    }

    /// A store whose entry 1 is written.
    private func store(_ kind: Kind, flags: EntryHead.Flags = []) async throws -> DiskStore {
        files.plan.cold = kind == .waiting ? 1_000 : 0
        let store = DiskStore(segments: 8, volume: .replaced(files))
        let tier = try await store.open()
        #expect(tier.enqueue(try store.entry(1, tags: ["t"], flags: flags)) == .stored)
        try await tier.flush()
        return store
    }

    /// Begins to read entry 1; returns when the read has found the record and stands at the gate.
    private func beginRead(in store: DiskStore) async throws -> Task<Int?, Never> {
        let hasBegun = Race<Void>()
        files.stopNextRead { [gate] in
            hasBegun.finish(.success(()))
            gate.wait()
        }
        // A read on the caller's thread keeps that thread.
        let read = Task.detached(executorPreference: executor) {
            try? await store.version(1)
        }
        try await hasBegun.result()
        return read
    }

    private func reclaimEverySegment(of store: DiskStore) async throws {
        let tier = try #require(store.tier)
        var number = 2
        while tier.statistics.segmentsReclaimed < 16, number < 10_000 {
            #expect(tier.enqueue(try store.entry(number, bytes: 4_000)) == .stored)
            if number.isMultiple(of: 8) { try await tier.flush() }
            number += 1
        }
        try await tier.flush()
        #expect(tier.statistics.segmentsReclaimed >= 16)
    }
}

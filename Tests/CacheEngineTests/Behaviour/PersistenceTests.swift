import CacheTestSupport
import Foundation
import Synchronization
import Testing

@testable import CacheEngine

/// The entries that are written to disk, those that must not be, and the state after a restart.
@Suite struct PersistenceTests {
    let folder: Folder
    let clock = TestClock()

    init() throws { folder = try Folder() }

    /// Opens a cache on disk in the test's folder.
    func open(
        _ origin: ScriptedOrigin = ScriptedOrigin(),
        in folder: Folder? = nil,
        megabytes: Int = 16,
        _ change: (inout HTTPCache.Configuration) -> Void = { _ in }
    ) async throws -> Stage {
        let path = (folder ?? self.folder).path("cache")
        return try await Stage(origin, clock: clock) {
            $0.backing = .disk(path: path, capacity: .megabytes(megabytes))
            change(&$0)
        }
    }

    /// A text that occurs in no other file.
    static let marker = "marker-9c41e7d05b-x7Q-unrepeatable-2f8860b3"

    static func url(_ number: Int) -> String { "http://example.com/\(number)" }

    // MARK: Disk hits and size limits (H1, H13)

    @Test("H1: a disk hit is promoted, and the second read is from memory")
    func diskHitIsPromoted() async throws {
        let stage = try await open()
        _ = try await stage.get()
        try await stage.cache.flush()
        await stage.cache.relieveMemoryPressure()
        let request = CacheRequest(url: Stage.url)
        #expect(stage.cache.immediateResponse(to: request) == nil)
        let first = try await stage.get()
        #expect(first.source == .fresh)
        #expect(first.info.tier == .disk)
        #expect(stage.cache.immediateResponse(to: request)?.info.tier == .memory)
        #expect(try await stage.get().info.tier == .memory)
        #expect(await stage.cache.statistics.diskHits == 1)
        #expect(stage.origin.count == 1)
        await stage.end()
    }

    @Test("H1: a disk hit in the page cache needs no waiting, and is counted once")
    func diskHitInThePageCacheNeedsNoWaiting() async throws {
        let stage = try await open()
        _ = try await stage.get()
        try await stage.cache.flush()
        await stage.cache.relieveMemoryPressure()
        let before = await stage.cache.statistics
        func answer(_ request: CacheRequest) -> CacheResponse? {
            let answer = stage.cache.immediateAnswer(to: request, bodyBytesMax: 0) { _ in }
            guard case .response(let response) = answer else { return nil }
            return response
        }
        let missing = CacheRequest(url: Self.url(404))
        #expect(answer(missing) == nil)
        let hit = try #require(answer(CacheRequest(url: Stage.url)))
        #expect(hit.info.tier == .disk)
        #expect(hit.info.source == .fresh)
        #expect(try await hit.body.collect().text == "hello")
        #expect(answer(CacheRequest(url: Stage.url))?.info.tier == .memory)
        // What must be revalidated is left to the longer way, which counts it.
        await stage.cache.relieveMemoryPressure()
        let revalidated = CacheRequest(url: Stage.url, fields: ["Cache-Control": "no-cache"])
        #expect(answer(revalidated) == nil)
        let after = await stage.cache.statistics
        #expect(after.diskHits == before.diskHits + 1)
        #expect(after.answers[.fresh] == (before.answers[.fresh] ?? 0) + 2)
        #expect(stage.origin.count == 1)
        await stage.end()
    }

    @Test("H13: what is too large for memory goes to disk, up to its own limit")
    func largeBodiesGoToDisk() async throws {
        let body = String(repeating: "0123456789abcdef", count: 40_000)
        let stage = try await open(
            ScriptedOrigin(fields: ["Cache-Control": "max-age=60"], body: body)
        ) { $0.memory = .megabytes(1) }
        #expect(try await stage.get().body == body)
        let hit = try await stage.get()
        #expect(hit.source == .fresh)
        #expect(hit.info.tier == .disk)
        #expect(hit.body == body)
        await stage.end()

        let other = try Folder()
        let strict = try await open(
            ScriptedOrigin { _, _ in
                let source = ManualBody()
                for _ in 0..<4 { source.feed(body) }
                source.finish()
                return OriginResponse(
                    status: 200,
                    fields: ["Cache-Control": "max-age=60"],
                    body: source.stream()
                )
            },
            in: other
        ) { $0.memory = .megabytes(1) }
        #expect(try await strict.get().body.utf8.count == 4 * body.utf8.count)
        #expect(try await strict.holds() == false, "5 % of 16 MiB is less than 2.5 MB")
        await strict.end()
    }

    @Test("U5: a body that is too large for memory is stored by hand in a file of its own")
    func largeBodyStoredByHandGoesToDisk() async throws {
        let stage = try await open(megabytes: 64) { $0.memory = .megabytes(1) }
        func store(
            _ body: BodyStream,
            _ place: StoragePlace = .everywhere
        ) async throws -> StoreOutcome {
            let fields: HeaderFields = [
                "Cache-Control": "max-age=60", "Content-Length": "1", "Vary": "Accept",
            ]
            var options = HTTPCache.ManualStoreOptions()
            options.place = place
            return try await stage.cache.store(
                CacheResponse(status: 200, fields: fields, body: body),
                for: CacheRequest(url: Stage.url),
                options: options
            )
        }
        let text = String(repeating: "0123456789abcdef", count: 125_000)
        let whole = BodyStream(ByteChunk(text))
        let arriving = ManualBody()
        for _ in 0..<4 { arriving.feed(String(text.prefix(500_000))) }
        arriving.finish()
        for body in [whole, arriving.stream()] {
            #expect(try await store(body) == .stored)
            let hit = try await stage.get()
            #expect(hit.info.tier == .disk && hit.source == .fresh)
            #expect(hit.body == text)
            #expect(hit.fields["Content-Length"] == "2000000")
        }
        #expect(try await store(whole, .memoryOnly) == .refused(.tooLarge))
        #expect(try await stage.holds() == false)

        let broken = ManualBody()
        for _ in 0..<4 { broken.feed(String(text.prefix(500_000))) }
        broken.fail(CacheError(.originFailed, detail: "On purpose"))
        await #expect(throws: CacheError.self) { try await store(broken.stream()) }
        let endless = ManualBody()
        for _ in 0..<8 { endless.feed(String(text.prefix(500_000))) }
        endless.finish()
        #expect(try await store(endless.stream()) == .refused(.tooLarge), "5 % of 64 MB is less")
        #expect(try await stage.holds() == false)
        #expect(stage.origin.count == 0)
        await stage.end()
    }

    // MARK: Memory-only entries (K1)

    @Test("K1: memory-only bytes are found in no file, and end the copy that was there")
    func memoryOnlyBytesReachNoFile() async throws {
        let stage = try await open()
        let request = CacheRequest(url: Stage.url)
        func response(_ text: String) -> CacheResponse {
            CacheResponse(
                status: 200,
                fields: ["Cache-Control": "max-age=60", "X-Secret": text],
                body: BodyStream(ByteChunk(text))
            )
        }
        var options = HTTPCache.ManualStoreOptions()
        options.place = .memoryOnly
        let other = CacheRequest(url: "http://example.com/other")
        try await stage.cache.store(response("open " + Self.marker), for: other)
        try await stage.cache.flush()
        #expect(try folder.contains("open " + Self.marker), "Else the search finds nothing anyway")

        try await stage.cache.store(response("before"), for: request)
        try await stage.cache.flush()
        options.userInfo = ByteChunk("secret " + Self.marker)
        let outcome = try await stage.cache.store(
            response("secret " + Self.marker),
            for: request,
            options: options
        )
        #expect(outcome == .stored)
        #expect(try await stage.get().body == "secret " + Self.marker)
        try await stage.cache.flush()
        #expect(try folder.contains("secret " + Self.marker) == false)
        await stage.end()
        #expect(try folder.contains("secret " + Self.marker) == false)

        let reopened = try await open()
        #expect(try await reopened.holds() == false, "Not even the copy of before")
        await reopened.end()
    }

    @Test("K1: a memory-only response that varies leaves no URL in a file, in its index either")
    func memoryOnlyVariantLeavesNoIndex() async throws {
        let stage = try await open()
        let response = CacheResponse(
            status: 200,
            fields: ["Cache-Control": "max-age=60", "Vary": "Cookie"],
            body: BodyStream(ByteChunk("x"))
        )
        var options = HTTPCache.ManualStoreOptions()
        options.place = .memoryOnly
        let request = CacheRequest(url: "http://example.com/?token=" + Self.marker)
        #expect(try await stage.cache.store(response, for: request, options: options) == .stored)
        #expect(try await stage.holds(request.url))
        try await stage.cache.flush()
        await stage.end()
        #expect(try folder.contains(Self.marker) == false)
    }

    // MARK: Directories (U1 to U3)

    @Test("U1: the directory is made, for its owner alone")
    func directoryIsMadeForItsOwner() async throws {
        let stage = try await open()
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.path("cache"))
        #expect(attributes[.posixPermissions] as? Int == 0o700)
        for file in folder.files {
            let attributes = try FileManager.default.attributesOfItem(atPath: file)
            #expect(attributes[.posixPermissions] as? Int == 0o600, "\(file)")
        }
        await stage.end()
    }

    @Test("U1: a file in the way, or a directory that holds something else, is a clear error")
    func unusableDirectoriesAreClearErrors() async throws {
        try Data("no cache".utf8).write(to: URL(filePath: folder.path("cache")))
        await #expect {
            _ = try await open()
        } throws: {
            ($0 as? CacheError)?.code == .directoryUnusable
        }
        #expect(try Data(contentsOf: URL(filePath: folder.path("cache"))) == Data("no cache".utf8))
    }

    @Test("U2: a second opener gets .directoryInUse, until the first has closed")
    func secondOpenerIsRefused() async throws {
        let first = try await open()
        for _ in 0..<2 {
            await #expect {
                _ = try await open()
            } throws: {
                ($0 as? CacheError)?.code == .directoryInUse
            }
        }
        _ = try await first.get()
        #expect(try await first.get().source == .fresh, "The first goes on")
        await first.end()
        let second = try await open()
        #expect(try await second.get().source == .fresh)
        await second.end()
    }

    @Test("U3: caches over several directories are independent")
    func directoriesAreIndependent() async throws {
        let folders = [try Folder(), try Folder(), try Folder()]
        var stages: [Stage] = []
        for (number, folder) in folders.enumerated() {
            let stage = try await open(ScriptedOrigin(body: "cache \(number)"), in: folder)
            _ = try await stage.get()
            stages.append(stage)
        }
        try await stages[1].cache.removeAll()
        for (number, stage) in stages.enumerated() {
            #expect(try await stage.holds() == (number != 1))
            await stage.end()
        }
        let again = try await open(in: folders[2])
        #expect(try await again.get().body == "cache 2")
        await again.end()
    }

    // MARK: Restarts (U13, U14, K5, A12)

    @Test("U13: what was committed is there after a clean end, and after a killed process")
    func committedEntriesSurvive() async throws {
        let origin = ScriptedOrigin { request, _ in
            .whole(
                fields: ["Cache-Control": "max-age=60", "Vary": "Accept", "X-Url": request.url],
                body: "\(request.url) \(request.fields["Accept"] ?? "-")"
            )
        }
        let stage = try await open(origin)
        for number in 0..<100 {
            _ = try await stage.get(Self.url(number), ["Accept": "a/\(number % 3)"])
        }
        try await stage.cache.flush()
        let killed = try folder.copy()
        await stage.end()
        for folder in [killed, folder] {
            let stage = try await open(in: folder)
            for number in 0..<100 {
                let accept: HeaderFields = ["Accept": "a/\(number % 3)"]
                let answer = try await stage.get(Self.url(number), accept)
                #expect(answer.source == .fresh)
                #expect(answer.body == "\(Self.url(number)) a/\(number % 3)")
                #expect(answer.fields["X-Url"] == Self.url(number))
            }
            #expect(stage.origin.count == 0)
            await stage.end()
        }
    }

    @Test("U13: age goes on counting while the cache is closed")
    func ageGoesOnWhileClosed() async throws {
        let stage = try await open()
        _ = try await stage.get()
        await stage.end()
        clock.advance(seconds: 45)
        let later = try await open()
        let answer = try await later.get()
        #expect(answer.info.ageSeconds == 45)
        #expect(answer.info.storedAtSeconds == Stage.startSeconds)
        clock.advance(seconds: 15)
        #expect(try await later.get().source == .origin)
        await later.end()
    }

    @Test("U14: the ephemeral preset writes no file")
    func ephemeralWritesNoFile() async throws {
        let stage = try await open { $0 = .ephemeral() }
        for number in 0..<50 { _ = try await stage.get(Self.url(number)) }
        try await stage.cache.flush()
        #expect(folder.files.isEmpty)
        await stage.end()
        #expect(folder.files.isEmpty)
    }

    @Test("K5: user info survives a restart and the 304 after it")
    func userInfoSurvivesOnDisk() async throws {
        let resource = Resource()
        let hook: @Sendable (StoreProposal) -> StoreProposal = { proposal in
            var proposal = proposal
            proposal.userInfo = ByteChunk("note")
            return proposal
        }
        let first = try await open(ScriptedOrigin { request, _ in resource.answer(request) }) {
            $0.hooks.willStore = { hook($0) }
        }
        _ = try await first.get()
        await first.end()
        clock.advance(seconds: 61)
        let second = try await open(ScriptedOrigin { request, _ in resource.answer(request) })
        let confirmed = try await second.get()
        #expect(confirmed.source == .revalidated)
        #expect(confirmed.info.userInfo?.text == "note")
        await second.end()
        let third = try await open()
        #expect(try await third.get().info.userInfo?.text == "note")
        await third.end()
    }

    @Test("A12: session entries on disk are gone at the next open; permanent and pinned ones stay")
    func sessionEndsWithTheProcess() async throws {
        let stage = try await open()
        for (name, storageClass) in [
            ("permanent", StorageClass.permanent), ("session", .session), ("pinned", .pinned),
        ] {
            _ = try await stage.get(
                "http://example.com/\(name)",
                policy: CachePolicy(storageClass: storageClass)
            )
        }
        try await stage.cache.flush()
        let killed = try folder.copy()
        await stage.end()
        for folder in [killed, folder] {
            let stage = try await open(in: folder)
            #expect(try await stage.holds("http://example.com/permanent"))
            #expect(try await stage.holds("http://example.com/pinned"))
            #expect(try await stage.holds("http://example.com/session") == false)
            await stage.end()
        }
    }

    @Test("A14: clearing a class on disk counts entries and bytes")
    func clearingByClassOnDisk() async throws {
        let stage = try await open()
        for number in 0..<10 {
            _ = try await stage.get(
                Self.url(number),
                policy: CachePolicy(storageClass: number < 4 ? .session : .permanent)
            )
        }
        try await stage.cache.flush()
        await stage.cache.relieveMemoryPressure()
        let count = try await stage.cache.endSession()
        #expect(count.entries == 4)
        #expect(count.bytes > 0)
        for number in 0..<10 { #expect(try await stage.holds(Self.url(number)) == (number >= 4)) }
        await stage.end()
    }

    @Test("A5: a policy that writes nothing leaves the files as they are")
    func notWritingLeavesTheFilesAlone() async throws {
        let resource = Resource()
        let origin = ScriptedOrigin { request, _ in resource.answer(request) }
        let stage = try await open(origin)
        _ = try await stage.get()
        try await stage.cache.flush()
        let before = await stage.cache.statistics.disk
        clock.advance(seconds: 61)
        let policy = CachePolicy(.doNotWriteToCache)
        _ = try await stage.get(policy: policy)
        resource.change(body: "two " + Self.marker, tag: "\"2\"")
        _ = try await stage.get(policy: policy)
        _ = try await stage.get("http://example.com/new", policy: policy)
        try await stage.cache.flush()
        #expect(await stage.cache.statistics.disk == before)
        #expect(try folder.contains(Self.marker) == false)
        await stage.end()
    }

    @Test("A22: the engine's own disk conforms to the promises of a store")
    func diskConforms() async throws {
        let folder = folder
        let numbers = Numbers()
        let kit = StoreConformance(
            seeds: 0..<16,
            steps: 100,
            reopen: { store in
                guard let tier = store as? DiskTier else { return store }
                await tier.close()
                return try await DiskTier.open(tier.configuration)
            },
            open: {
                let path = folder.path("store-\(numbers.next())")
                return try await DiskTier.open(
                    DiskConfiguration(directory: path, capacityBytes: 4 << 20)
                )
            }
        )
        // The disk purges lazily: its counts leave out entries it has not read
        // (docs/decisions/0035).
        let failures = await kit.run().filter { !"\($0)".contains(" counted ") }
        #expect(failures.isEmpty, "\(failures.prefix(3))")
    }
}

/// A counter that any task may use.
private final class Numbers: Sendable {
    private let value = Mutex(0)

    func next() -> Int {
        value.withLock {
            $0 += 1
            return $0
        }
    }
}

import CacheEngine
import CacheEngineFoundation
import CacheTestSupport
import Foundation
import FoundationNetworking
import Testing

/// The delegate's `willCacheResponse`: modify, refuse, keep in memory.
@Suite(.timeLimit(.minutes(1))) struct ProtocolConsentTests {
    private func loaded(
        _ fields: [(String, String)] = [("Cache-Control", "max-age=60")],
        _ delegate: RecordingDelegate,
        storing: CachingURLProtocol.Storing = .askingDelegate,
        _ change: (inout HTTPCache.Configuration) -> Void = { _ in }
    ) async throws -> LoadingFixture {
        let fixture = try await LoadingFixture(fields, delegate: delegate, storing: storing, change)
        fixture.session.dataTask(with: try fixture.request()).resume()
        #expect(await delegate.eventsToTheEnd().last == .end(nil))
        return fixture
    }

    @Test func delegateIsAskedOnceAboutTheWholeBody() async throws {
        let delegate = RecordingDelegate()
        let fixture = try await loaded(delegate)
        #expect(delegate.seen.filter { $0 == .proposal("v1") }.count == 1)
        #expect(try await fixture.load().requests == 0)
        fixture.clock.advance(seconds: 61)
        #expect(try await fixture.load().requests == 1)
        #expect(try await fixture.load().requests == 0)
        #expect(delegate.seen.filter { $0 == .proposal("v1") }.count == 1)
    }

    @Test func refusedResponseIsNotStored() async throws {
        let fixture = try await loaded(RecordingDelegate(store: { $1(nil) }))
        #expect(await fixture.cache.statistics.memory.entries == 0)
        #expect(try await fixture.load().requests == 1)
    }

    /// The replaced entry must not answer for the refused one.
    @Test func refusedReplacementEndsTheStoredResponse() async throws {
        let delegate = RecordingDelegate(store: { proposal, answer in
            answer(proposal.data == Data("v1".utf8) ? proposal : nil)
        })
        let fixture = try await loaded(delegate)
        fixture.changeResource()
        #expect(try await fixture.load("/", .reloadRevalidatingCacheData).text == "v2")
        #expect(await fixture.failure("/", .returnCacheDataDontLoad) == .resourceUnavailable)
    }

    @Test func changedResponseIsStoredAndTheTaskGetsTheOrigins() async throws {
        let delegate = RecordingDelegate(store: { proposal, answer in
            answer(
                CachedURLResponse(
                    response: proposal.response,
                    data: Data("changed".utf8),
                    userInfo: ["by": "delegate"],
                    storagePolicy: .allowed
                )
            )
        })
        let fixture = try await loaded(delegate)
        #expect(delegate.seen.contains(.data("v1")))
        #expect(try await fixture.load().text == "changed")
        let stored = try fixture.facade.cachedResponse(for: fixture.request())
        #expect(stored?.userInfo?["by"] as? String == "delegate")
    }

    @Test func memoryOnlyResponseReachesNoFile() async throws {
        let folder = TemporaryFolder()
        let delegate = RecordingDelegate(store: { proposal, answer in
            answer(
                CachedURLResponse(
                    response: proposal.response,
                    data: Data("in memory, and in no file".utf8),
                    userInfo: nil,
                    storagePolicy: .allowedInMemoryOnly
                )
            )
        })
        let fixture = try await loaded(delegate: delegate, folder)
        #expect(try await fixture.load().requests == 0)
        let stored = try #require(try fixture.facade.cachedResponse(for: fixture.request()))
        #expect(stored.storagePolicy == .allowedInMemoryOnly)
        try await fixture.cache.flush()
        await fixture.cache.shutDown()
        let files = try #require(FileManager.default.enumerator(atPath: folder.path))
        var count = 0
        for case let name as String in files {
            guard let data = FileManager.default.contents(atPath: folder.path + "/" + name) else {
                continue
            }
            count += 1
            #expect(data.range(of: Data("in no file".utf8)) == nil, "\(name)")
            #expect(data.range(of: Data("v1".utf8)) == nil, "\(name)")
        }
        #expect(count > 0)
    }

    private func loaded(
        delegate: RecordingDelegate,
        _ folder: TemporaryFolder
    ) async throws -> LoadingFixture {
        try await loaded(delegate) {
            $0.backing = .disk(path: folder.path + "/c", capacity: .megabytes(16))
        }
    }

    @Test func responseThatMustNotBeStoredIsNotProposed() async throws {
        let delegate = RecordingDelegate()
        let fixture = try await loaded([("Cache-Control", "no-store")], delegate)
        #expect(!delegate.seen.contains(.proposal("v1")))
        #expect(await fixture.cache.statistics.memory.entries == 0)
    }

    @Test func hookOfTheCacheDecidesInPlaceOfTheDelegate() async throws {
        let delegate = RecordingDelegate(store: { $1(nil) })
        let fixture = try await loaded(delegate) { $0.hooks.willStore = { $0 } }
        #expect(!delegate.seen.contains(.proposal("v1")))
        #expect(try await fixture.load().requests == 0)
    }

    @Test func rulesDecideIfTheDelegateIsNotToBeAsked() async throws {
        let delegate = RecordingDelegate(store: { $1(nil) })
        let fixture = try await loaded(delegate, storing: .byRules)
        #expect(!delegate.seen.contains(.proposal("v1")))
        #expect(try await fixture.load().requests == 0)
    }

    @Test func delegateThatNeverAnswersDelaysTheEndForALimitedTime() async throws {
        let delegate = RecordingDelegate(store: { _, _ in })
        let fixture = try await loaded(delegate) { $0.hooks.maximumWillStoreTime = .seconds(0.1) }
        #expect(await fixture.cache.statistics.memory.entries == 0)
    }
}

extension ProtocolConsentTests {
    private func loaded(
        _ delegate: RecordingDelegate,
        storing: CachingURLProtocol.Storing = .askingDelegate,
        _ change: (inout HTTPCache.Configuration) -> Void = { _ in }
    ) async throws -> LoadingFixture {
        try await loaded([("Cache-Control", "max-age=60")], delegate, storing: storing, change)
    }
}

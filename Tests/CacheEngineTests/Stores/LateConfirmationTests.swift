import CacheEngine
import CacheTestSupport
import Testing

/// A late 304 freshens the entry it confirmed, or no entry.
@Suite(.timeLimit(.minutes(1))) struct LateConfirmationTests {
    private static let request = StoreScene.request

    /// Stores v2 by hand during a revalidation of v1; then the 304 arrives.
    private func storedBody(
        after origin: HeldOrigin,
        _ scene: SimulatedCache,
        _ options: HTTPCache.ManualStoreOptions = HTTPCache.ManualStoreOptions(),
        evicting: Bool
    ) async throws -> String? {
        let first = scene.ask(Self.request)
        await scene.settle()
        let fields: HeaderFields = ["Cache-Control": "max-age=0", "ETag": "\"1\""]
        origin.exchanges[0].answer(fields: fields, body: "v1")
        await scene.settle()
        #expect(first.text == "v1")
        let second = scene.ask(Self.request)
        await scene.settle()
        #expect(origin.exchanges.last?.request.fields["If-None-Match"] == "\"1\"")
        await scene.perform { cache in
            // Same length and same fields: only the bytes differ.
            let response = CacheResponse(
                status: 200,
                fields: fields.adding("Content-Length", "2"),
                body: BodyStream(ByteChunk("v2"))
            )
            _ = try? await cache.store(response, for: Self.request, options: options)
            if evicting { await cache.relieveMemoryPressure() }
        }
        let late: HeaderFields = ["Cache-Control": "max-age=600", "ETag": "\"1\""]
        origin.exchanges.last?.answer(status: 304, fields: late, body: "")
        await scene.settle()
        #expect(second.isComplete)
        if evicting { await scene.cache.relieveMemoryPressure() }
        let look = scene.executor.start { [cache = scene.cache] in
            let stored = try? await cache.storedResponse(for: Self.request)
            return try? await stored?.body.collect().text
        }
        await scene.settle()
        return await look.value
    }

    @Test(arguments: [MemoryOptions.disabled, .megabytes(8)])
    func lateConfirmationDoesNotReplaceANewerEntryInACustomStore(memory: MemoryOptions) async throws
    {
        let origin = HeldOrigin()
        let scene = try await StoreScene(origin) { $0.memory = memory }
        let body = try await storedBody(after: origin, scene.simulation, evicting: true)
        #expect(body == "v2")
        #expect(await scene.simulation.shutDown())
    }

    @Test func lateConfirmationDoesNotRestoreAnEntryInMemory() async throws {
        let origin = HeldOrigin()
        let scene = try await SimulatedCache(origin: origin)
        let body = try await storedBody(after: origin, scene, evicting: true)
        #expect(body == nil, "v2 was evicted; v1 must not come back")
        #expect(await scene.shutDown())
    }

    @Test func lateConfirmationDoesNotRestoreTheEntryBehindAMemoryOnlyOne() async throws {
        let origin = HeldOrigin()
        let scene = try await StoreScene(origin) { $0.memory = .megabytes(8) }
        var options = HTTPCache.ManualStoreOptions()
        options.place = .memoryOnly
        let body = try await storedBody(after: origin, scene.simulation, options, evicting: true)
        #expect(body == nil)
        #expect(await scene.simulation.shutDown())
    }

    @Test func confirmationFreshensAnEntryInACustomStore() async throws {
        let origin = HeldOrigin()
        let scene = try await StoreScene(origin)
        let fields: HeaderFields = ["Cache-Control": "max-age=0", "ETag": "\"1\""]
        for round in 0..<2 {
            _ = scene.simulation.ask(Self.request)
            await scene.simulation.settle()
            let fresh: HeaderFields = ["Cache-Control": "max-age=600", "ETag": "\"1\""]
            if round == 0 {
                origin.exchanges[0].answer(fields: fields, body: "v1")
            } else {
                origin.exchanges[1].answer(status: 304, fields: fresh, body: "")
            }
            await scene.simulation.settle()
        }
        let third = await scene.get()
        #expect(third.info?.source == .fresh)
        #expect(third.text == "v1")
        #expect(await scene.simulation.shutDown())
    }
}

extension HeaderFields {
    fileprivate func adding(_ name: String, _ value: String) -> HeaderFields {
        var fields = self
        fields[name] = value
        return fields
    }
}

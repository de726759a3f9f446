import CacheEngine
import CacheTestSupport
import Testing

/// A cache in front of an origin that holds every request, for the single-flight tests.
///
/// The statements are numbered S1 to S30. `sNN` in a test's name is the statement it proves;
/// `docs/behaviour-map.md` lists them.
struct FlightScene {
    let origin: HeldOrigin
    let world: SimulatedCache

    init(
        seed: UInt64 = 1,
        cancellation: HeldOrigin.Cancellation = .honoured,
        _ change: (inout HTTPCache.Configuration) -> Void = { _ in }
    ) async throws {
        var configuration = HTTPCache.Configuration(memory: .megabytes(32))
        change(&configuration)
        origin = HeldOrigin(cancellation: cancellation)
        world = try await SimulatedCache(
            seed: seed,
            configuration: configuration,
            origin: origin
        )
    }

    /// Starts `count` requests and lets them run as far as they can.
    func crowd(
        _ count: Int,
        _ request: CacheRequest = .page,
        reading: Caller.Reading = .steadily
    ) async -> [Caller] {
        let callers = (0..<count).map { _ in world.ask(request, reading: reading) }
        await world.settle()
        return callers
    }

    /// Answers the request with that index.
    func answer(
        _ index: Int,
        status: Int = 200,
        fields: HeaderFields = ["Cache-Control": "max-age=60"],
        body: String = "hello"
    ) async throws {
        let exchange = try #require(origin.exchanges.dropFirst(index).first)
        exchange.answer(status: status, fields: fields, body: body)
        await world.settle()
    }

    /// Fails the request with that index.
    func fail(_ index: Int, _ detail: String = "refused") async throws {
        let exchange = try #require(origin.exchanges.dropFirst(index).first)
        exchange.fail(CacheError(.originFailed, detail: detail))
        await world.settle()
    }

    /// Answers the request with that index with a head, and a body that is still empty.
    func begin(
        _ index: Int,
        fields: HeaderFields = ["Cache-Control": "max-age=60"]
    ) async throws -> ManualBody {
        let exchange = try #require(origin.exchanges.dropFirst(index).first)
        let body = ManualBody()
        exchange.answer(fields: fields, body: body)
        await world.settle()
        return body
    }

    /// Checks that no work is left, both before the shutdown and after it.
    func close(sourceLocation: SourceLocation = #_sourceLocation) async {
        #expect(await world.work == WorkUnderWay(), sourceLocation: sourceLocation)
        #expect(await world.shutDown(), sourceLocation: sourceLocation)
    }
}

extension CacheRequest {
    static let page = CacheRequest(url: "http://example.com/page")

    static func speaking(_ language: String) -> CacheRequest {
        page.with { $0.fields["Accept-Language"] = language }
    }

    func with(_ change: (inout CacheRequest) -> Void) -> CacheRequest {
        var request = self
        change(&request)
        return request
    }
}

extension ManualBody {
    /// Feeds a piece of the body and lets all readers read it.
    func feed(_ text: String, _ world: SimulatedCache) async {
        feed(text)
        await world.settle()
    }

    func finish(_ world: SimulatedCache) async {
        finish()
        await world.settle()
    }
}

/// The seeds of the schedules under which each racing statement is tested.
let raceSeeds: Range<UInt64> = 0..<64

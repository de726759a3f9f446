import CacheEngine
import CacheTestSupport

/// One scene and one conduct of the origin, for many requests that each have their own URL.
struct OracleRun: Sendable {
    let scene: Scene
    let conduct: OracleOrigin.Conduct
    let wishes: [[Wish]]
    private let stage: OracleStage

    /// A forbidden response, or a forbidden trace of a request.
    struct Violation: Sendable {
        let scene: Scene
        let conduct: OracleOrigin.Conduct
        let wishes: [Wish]
        let step: String
        let fault: String
    }

    init(
        _ scene: Scene,
        _ conduct: OracleOrigin.Conduct,
        _ wishes: [[Wish]],
        validators: Representation.Validators = .both,
        terms: AllowedAnswers.Terms = .init()
    ) async throws {
        self.scene = scene
        self.conduct = conduct
        self.wishes = wishes
        stage = try await OracleStage(varies: scene.varies, validators, terms)
    }

    /// Stores the response of the scene, sends the requests, and checks the entries that each left.
    func violations() async throws -> [Violation] {
        try await prepare()
        var found: [Violation] = []
        stage.origin.behave(conduct, version: conduct.version)
        found += await send("request") { $0 }
        // The shared failure lasts one second; from here on the origin is correct again.
        stage.clock.advance(seconds: 2)
        stage.origin.behave(.same, version: conduct.version)
        found += await sendPlain("what is stored", ["Cache-Control": "only-if-cached"])
        found += await sendPlain(
            "a part of what is stored",
            ["Cache-Control": "only-if-cached", "Range": "bytes=4-9"]
        )
        found += await sendPlain("the next GET", [:])
        stage.clock.advance(seconds: 200)
        found += await sendPlain("a GET when all is stale", [:])
        await stage.cache.shutDown()
        return found
    }

    private func url(_ index: Int) -> String { "http://example.com/\(index)" }

    private func prepare() async throws {
        stage.origin.behave(scene.conduct, version: 1)
        for index in wishes.indices {
            guard let request = scene.preparation(url(index)) else { continue }
            _ = try await stage.cache.respond(to: request).body.collect()
        }
        await stage.cache.waitUntilIdle()
        stage.clock.advance(seconds: scene.ageSeconds)
    }

    private func sendPlain(_ step: String, _ fields: HeaderFields) async -> [Violation] {
        await send(step) { request in
            var plain = CacheRequest(url: request.url, fields: scene.fields)
            for (name, value) in fields.pairs { plain.fields.append(name, value) }
            return plain
        }
    }

    private func send(
        _ step: String,
        _ change: (CacheRequest) -> CacheRequest
    ) async -> [Violation] {
        var found: [Violation] = []
        for (index, wishes) in wishes.enumerated() {
            var request = CacheRequest(url: url(index), fields: scene.fields)
            for wish in wishes { wish.apply(to: &request) }
            for fault in await stage.faults(of: change(request)) {
                found.append(
                    Violation(
                        scene: scene,
                        conduct: conduct,
                        wishes: wishes,
                        step: step,
                        fault: fault
                    )
                )
            }
        }
        return found
    }
}

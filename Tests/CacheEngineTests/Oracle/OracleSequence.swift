import CacheEngine
import CacheTestSupport

/// A history of one resource; every response on the way is checked by the oracle.
struct OracleSequence: Sendable, CustomStringConvertible {
    /// One step: a request, a change of the resource, or a pause.
    enum Step: String, CaseIterable, Sendable {
        case get, german, head, reload, noStore, authorized, post
        case start, rest, wholeByRange
        case ifNoneMatch, ifMatch
        case cut, torn, failing
        /// The resource changes to its next version.
        case revise
        case wait
        case remove

        /// Whether the step resembles another one; only the long histories use it.
        var isMinor: Bool { self == .wholeByRange || self == .failing || self == .ifNoneMatch }
    }

    let steps: [Step]
    let varies: Bool

    var description: String { steps.map(\.rawValue).joined(separator: " ") }

    private static let url = "http://example.com/"

    /// All violations, each with the steps before it.
    func faults() async throws -> [String] {
        let stage = try await OracleStage(varies: varies, .both, .init(staleIfErrorSeconds: 600))
        var past: [Step] = []
        var faults: [String] = []
        func note(_ found: [String], at name: String) {
            faults += found.map {
                "\(past.map(\.rawValue).joined(separator: " ")) | \(name): \($0)"
            }
        }
        stage.clock.advance(seconds: 10)
        for step in steps {
            note(try await perform(step, on: stage), at: step.rawValue)
            past.append(step)
            // Longer than a failure is shared with later requests.
            stage.clock.advance(seconds: 2)
        }
        for (language, range) in [("en", nil), ("de", nil), ("en", "bytes=3-10")] {
            var fields: HeaderFields = [
                "Cache-Control": "only-if-cached", "Accept-Language": language,
            ]
            fields["Range"] = range
            note(
                await stage.faults(of: CacheRequest(url: Self.url, fields: fields)),
                at: "what is stored, \(language) \(range ?? "")"
            )
        }
        note(try await perform(.get, on: stage), at: "the last GET")
        await stage.cache.shutDown()
        return faults
    }

    private func perform(_ step: Step, on stage: OracleStage) async throws -> [String] {
        switch step {
        case .wait: stage.clock.advance(seconds: 38)
        case .revise: revise(stage)
        case .remove:
            try await stage.cache.remove(CacheRequest(url: Self.url))
            stage.origin.forget(Self.url)
        case .cut, .torn, .failing:
            let conduct: OracleOrigin.Conduct =
                step == .cut ? .cut : step == .torn ? .torn : .error
            stage.origin.behave(conduct, version: stage.origin.version)
            defer { stage.origin.behave(.same, version: stage.origin.version) }
            return await stage.faults(of: request(.get, stage.origin.version))
        case .post:
            let faults = await stage.faults(of: request(step, stage.origin.version))
            revise(stage)
            return faults
        default: return await stage.faults(of: request(step, stage.origin.version))
        }
        return []
    }

    private func revise(_ stage: OracleStage) {
        let next = min(stage.origin.version + 1, Moment.versionsMax)
        stage.origin.behave(.same, version: next)
    }

    private func request(_ step: Step, _ version: Int) -> CacheRequest {
        var request = CacheRequest(url: Self.url, fields: ["Accept-Language": "en"])
        switch step {
        case .german: request.fields["Accept-Language"] = "de"
        case .head: request.method = .head
        case .reload: request.fields["Cache-Control"] = "no-cache"
        case .noStore: request.fields["Cache-Control"] = "no-store"
        case .authorized: request.fields["Authorization"] = "Basic cDpx"
        case .post:
            request.method = .post
            request.body = BodyStream(ByteChunk("post"))
        case .start: request.fields["Range"] = "bytes=0-5"
        case .rest: request.fields["Range"] = "bytes=6-"
        case .wholeByRange: request.fields["Range"] = "bytes=0-"
        // The tag of the first version, whichever version is served.
        case .ifNoneMatch: request.fields["If-None-Match"] = "\"a\""
        case .ifMatch: request.fields["If-Match"] = "\"a\""
        default: break
        }
        return request
    }
}

import CacheEngine

/// An origin that answers from a table.
struct TableOrigin: Origin {
    let pages: [String: String]

    func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        guard let page = pages[request.url] else { return OriginResponse(status: 404) }
        return OriginResponse(
            status: 200,
            fields: ["Cache-Control": "max-age=60", "Content-Type": "text/plain"],
            body: BodyStream(ByteChunk(page))
        )
    }
}

/// A body made a piece at a time, as somebody reads it.
actor Countdown: BodySource {
    private var left: Int

    init(from start: Int) { left = start }

    func next() async throws -> ByteChunk? {
        guard left > 0 else { return nil }
        defer { left -= 1 }
        return ByteChunk("\(left)\n")
    }

    nonisolated func cancel() {}
}

/// An origin in front of another one: it signs what is asked.
struct SignedOrigin: Origin {
    let inner: any Origin
    let token: @Sendable () async throws -> String

    func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        var request = request
        request.fields["Authorization"] = "Bearer " + (try await token())
        return try await inner.fetch(request)
    }
}

enum Origins {
    static func streamed() -> OriginResponse {
        OriginResponse(
            status: 200,
            fields: ["Cache-Control": "max-age=60"],
            body: BodyStream(Countdown(from: 1_000))
        )
    }
}

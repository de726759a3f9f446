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

/// A response whose body is a sequence of lines.
func response(_ lines: AsyncStream<String>) -> OriginResponse {
    OriginResponse(
        status: 200,
        fields: ["Content-Type": "text/event-stream"],
        body: BodyStream(lines.map { ByteChunk($0) })
    )
}

/// A body that is produced one piece at a time, on demand of its reader.
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

/// An origin that adds an authorization to each request and forwards it to another origin.
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

import CacheEngine
import Synchronization

/// Reads a document three times; the document changes before the third read.
///
///     swift run only-when-changed /tmp/prices
@main
struct OnlyWhenChangedExample {
    static func main() async throws {
        let directory = CommandLine.arguments.dropFirst().first ?? "only-when-changed-example"
        let origin = VersionedOrigin()
        let watcher = try await ChangeWatcher(directory: directory, origin: origin)
        for _ in 0..<2 { print(try await watcher.read("http://example.com/prices")) }
        origin.change()
        print(try await watcher.read("http://example.com/prices"))
        print("bodies sent:", origin.bodiesSent)
        await watcher.close()
    }
}

/// An origin in this process that counts the bodies that it sends.
final class VersionedOrigin: Origin {
    private let state = Mutex((version: 1, bodiesSent: 0))

    var bodiesSent: Int { state.withLock { $0.bodiesSent } }

    func change() { state.withLock { $0.version += 1 } }

    func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        state.withLock { state in
            let tag = "\"\(state.version)\""
            let fields: HeaderFields = ["Cache-Control": "max-age=3600", "ETag": tag]
            if request.fields["If-None-Match"] == tag {
                return OriginResponse(status: 304, fields: fields)
            }
            state.bodiesSent += 1
            let text = "Prices, version \(state.version)"
            return OriginResponse(status: 200, fields: fields, body: BodyStream(ByteChunk(text)))
        }
    }
}

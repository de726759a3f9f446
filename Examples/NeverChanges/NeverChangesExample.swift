import CacheEngine
import Synchronization

/// Loads an asset in two lives of the program; only the first life asks the origin.
///
///     swift run never-changes /tmp/assets
@main
struct NeverChangesExample {
    static func main() async throws {
        let directory = CommandLine.arguments.dropFirst().first ?? "never-changes-example"
        let origin = CountingOrigin()
        for life in 1...2 {
            let library = try await AssetLibrary(directory: directory, origin: origin)
            for _ in 0..<3 { _ = try await library.asset("http://example.com/logo.svg") }
            print("life \(life): the origin was asked \(origin.count) times")
            await library.close()
        }
    }
}

/// An origin in this process that counts its requests and forbids storing.
final class CountingOrigin: Origin {
    private let requests = Mutex(0)

    var count: Int { requests.withLock { $0 } }

    func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        requests.withLock { $0 += 1 }
        return OriginResponse(
            status: 200,
            fields: ["Cache-Control": "no-store"],
            body: BodyStream(ByteChunk("<svg/>"))
        )
    }
}

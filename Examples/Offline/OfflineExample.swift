import CacheEngine
import Synchronization

/// Reads a page, loses the network, closes, opens again, and reads the page once more.
@main
struct OfflineExample {
    static func main() async throws {
        let directory = CommandLine.arguments.dropFirst().first ?? "offline-example"
        let network = Network()
        let reader = try await OfflineReader(directory: directory, origin: network)
        print("online: ", try await reader.read("http://example.com/news"))
        await reader.close()

        network.cutOff()
        let later = try await OfflineReader(directory: directory, origin: network)
        print("offline:", try await later.read("http://example.com/news"))
        await later.close()
    }
}

/// An origin in this process, with a plug to pull.
final class Network: Origin {
    private let isUp = Mutex(true)

    func cutOff() { isUp.withLock { $0 = false } }

    func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        guard isUp.withLock({ $0 }) else {
            throw CacheError(.originFailed, detail: "No network")
        }
        return OriginResponse(
            status: 200,
            fields: ["Cache-Control": "max-age=0", "ETag": "\"1\""],
            body: BodyStream(ByteChunk("The news of the day"))
        )
    }
}

import CacheEngine
import CurlOrigin

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Shows a page, also after its server has become unreachable.
///
///     swift run offline-client https://example.com/ /tmp/offline-cache
@main
struct OfflineClient {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3 else {
            print("usage: offline-client URL DIRECTORY")
            exit(2)
        }
        let reader = try await OfflineReader(directory: arguments[2], origin: CurlOrigin())
        do {
            let page = try await reader.read(arguments[1])
            print(page.isStale ? "\(page.text) (kept)" : page.text)
        } catch {
            print("not available: \(error)")
        }
        await reader.close()
    }
}

// A small server that answers requests through a cache in front of an origin.
//
//     swift run server-loop https://example.com
//
// It serves one request for each connection, to keep the example short; a real server keeps
// connections open. Each request is read by a thread of its own, so that a silent client holds no
// task. A client that does not read holds one for at most ten seconds at a time.

import CacheEngine
import CurlOrigin

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

guard CommandLine.arguments.count == 2 else {
    print("usage: server-loop ORIGIN")
    exit(2)
}

let origin = CommandLine.arguments[1]
let cache = try await HTTPCache(
    configuration: HTTPCache.Configuration(memory: .megabytes(64)),
    origin: CurlOrigin()
)
let listener = try Listener()
listener.announce()

await withDiscardingTaskGroup { group in
    group.addTask { await cache.run() }
    for await arrival in listener.arrivals {
        group.addTask { await answer(arrival) }
    }
}

func answer(_ arrival: Arrival) async {
    let connection = arrival.connection
    defer { connection.close() }
    do {
        let request = CacheRequest(method: HTTPMethod(arrival.method), url: origin + arrival.target)
        let response = try await cache.respond(to: request)
        var head = "HTTP/1.1 \(response.status) \r\nConnection: close\r\n"
        for (name, value) in response.fields.pairs where !isOfConnection(name) {
            head += "\(name): \(value)\r\n"
        }
        connection.write(head + "\r\n")
        for try await chunk in response.body { connection.write(chunk.array) }
    } catch {
        connection.write("HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n\r\n\(error)\n")
    }
}

/// Returns whether a field belongs to the origin's connection (RFC 9110 §7.6.1).
func isOfConnection(_ name: String) -> Bool {
    ["connection", "keep-alive", "transfer-encoding", "upgrade"].contains(name.lowercased())
}

// A small server that answers requests through a cache in front of an origin.
//
//     swift run server-loop https://example.com
//
// It serves one request for each connection, to keep the example short; a real server keeps
// connections open.

import CacheEngine
import CurlOrigin

guard CommandLine.arguments.count == 2 else {
    print("usage: server-loop ORIGIN")
    throw CacheError(.requestInvalid, detail: "One argument is needed")
}

let origin = CommandLine.arguments[1]
let cache = try await HTTPCache(
    configuration: HTTPCache.Configuration(memory: .megabytes(64)),
    origin: CurlOrigin()
)
let listener = try Listener()
listener.announce()

await withTaskGroup(of: Void.self) { group in
    group.addTask { await cache.run() }
    for await connection in listener.connections {
        group.addTask { await answer(connection) }
    }
}

func answer(_ connection: Connection) async {
    defer { connection.close() }
    guard let (method, target) = connection.readRequest() else {
        return connection.write("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
    }
    do {
        let request = CacheRequest(method: HTTPMethod(method), url: origin + target)
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

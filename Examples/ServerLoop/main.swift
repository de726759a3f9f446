// A small server that answers requests through a cache in front of an origin.
//
//     swift run server-loop https://example.com
//
// It serves one request for each connection, to keep the example short; a real server keeps
// connections open. It answers GET and HEAD of HTTP/1.1. It forwards no content: a request with
// content or with another method gets a 501. The fields of a request reach the origin, without
// those of the client's connection.
//
// Each request is read by a thread of its own, so that a silent client holds no task. A client that
// does not read holds one for at most ten seconds at a time.

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

/// Answers a request.
///
/// An error before the response's head is a 502. A later one only closes the connection: the client
/// misses bytes of the announced length, or the last chunk, and knows that the body is incomplete.
func answer(_ arrival: Arrival) async {
    let connection = arrival.connection
    defer { connection.close() }
    let response: CacheResponse
    do {
        let request = CacheRequest(
            method: HTTPMethod(arrival.method),
            url: origin + arrival.target,
            fields: arrival.fields.forwarded
        )
        response = try await cache.respond(to: request)
    } catch {
        let text = arrival.method == "HEAD" ? "" : "\(error)\n"
        return connection.writeStatus("502 Bad Gateway", text)
    }
    try? await respond(with: response, to: arrival)
}

/// Writes a response, whose fields have none of the origin's connection.
///
/// A body whose length is not announced is sent in chunks, so that the client can tell its end from
/// an error.
func respond(with response: CacheResponse, to arrival: Arrival) async throws {
    let connection = arrival.connection
    let hasBody = arrival.method != "HEAD" && ![204, 304].contains(response.status)
    let isChunked = hasBody && !response.fields.contains("Content-Length")
    var head = "HTTP/1.1 \(response.status) \r\nConnection: close\r\n"
    if isChunked { head += "Transfer-Encoding: chunked\r\n" }
    for (name, value) in response.fields.pairs { head += "\(name): \(value)\r\n" }
    try connection.write(head + "\r\n")
    guard hasBody else { return }
    // A chunk without bytes would end the body.
    for try await chunk in response.body where !chunk.isEmpty {
        if isChunked { try connection.write(String(chunk.count, radix: 16) + "\r\n") }
        try connection.write(chunk.array)
        if isChunked { try connection.write("\r\n") }
    }
    if isChunked { try connection.write("0\r\n\r\n") }
}

extension HeaderFields {
    /// The fields of the request to the origin: without those of the client's connection and its
    /// framing (RFC 9110 §7.6.1), and without `Host`, because the origin is addressed by its own
    /// name.
    var forwarded: HeaderFields {
        var kept = self
        for line in values("Connection") {
            for member in line.split(separator: ",") {
                kept.remove(member.filter { !$0.isWhitespace }.lowercased())
            }
        }
        let ofConnection = [
            "Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Authorization",
            "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
        ]
        for name in ofConnection { kept.remove(name) }
        kept.append("Via", "1.1 server-loop")
        return kept
    }
}

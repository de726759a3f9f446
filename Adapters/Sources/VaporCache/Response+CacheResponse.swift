import CacheEngine
import NIOBridge
import NIOCore
import NIOHTTP1
import Vapor

extension Response {
    /// Creates a response from the cache's response, including `Age` and `Cache-Status`.
    ///
    /// If the client disconnects, the writer throws. This drops the stream and cancels any fetch
    /// that serves only this client.
    convenience init(_ answer: CacheResponse, to request: Request) {
        // Vapor adds a Date of its own; `Age` reports the age of the response.
        var headers = HTTPHeaders(answer.fields.pairs.map { ($0.name, $0.value) })
        headers.remove(name: .date)
        let body = answer.body
        let content: Response.Body =
            if let chunk = body.availableChunk {
                .init(buffer: ByteBuffer(chunk))
            } else {
                .init(
                    managedAsyncStream: { writer in
                        for try await chunk in body {
                            try await writer.writeBuffer(ByteBuffer(chunk))
                        }
                    },
                    count: body.count ?? -1
                )
            }
        // SwiftNIO writes the end of a chunked body after a response to HEAD without a length, and
        // the client takes it for the beginning of the next response. HTTP/1.0 has no such end.
        let isUnframed =
            request.method == .HEAD && request.version.major == 1
            && !headers.contains(name: .contentLength)
        // The fields are unchanged: a response to HEAD has the length of the response to GET.
        self.init(
            status: .init(statusCode: answer.status),
            version: isUnframed ? .http1_0 : request.version,
            headersNoUpdate: headers,
            body: content
        )
    }
}

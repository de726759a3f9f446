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
        // The fields are unchanged: a response to HEAD has the length of the response to GET.
        self.init(
            status: .init(statusCode: answer.status),
            version: request.version,
            headersNoUpdate: headers,
            body: content
        )
    }
}

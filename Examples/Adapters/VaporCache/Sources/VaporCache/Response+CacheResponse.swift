import CacheEngine
import NIOBridge
import NIOCore
import NIOHTTP1
import Vapor

extension Response {
    /// The cache's answer, `Age` and `Cache-Status` with it.
    ///
    /// A client that leaves makes the writer throw; the stream is let go with that, and whatever
    /// fetches only for this client is cancelled.
    convenience init(_ answer: CacheResponse, to request: Request) {
        // Vapor adds a Date of its own; how old the answer is says Age.
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
        // The fields stay as they are: an answer to HEAD has the length of what GET would bring.
        self.init(
            status: .init(statusCode: answer.status),
            version: request.version,
            headersNoUpdate: headers,
            body: content
        )
    }
}

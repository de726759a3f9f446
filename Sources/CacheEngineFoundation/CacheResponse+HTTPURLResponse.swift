public import CacheEngine
public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

extension CacheResponse {
    /// The answer as the cache takes it.
    public init(_ response: HTTPURLResponse, body: Data) {
        self.init(
            status: response.statusCode,
            fields: HeaderFields(response),
            body: BodyStream(ByteChunk(body))
        )
    }

    /// A stored answer of the URL loading system; one that is not HTTP counts as a 200.
    public init(_ cached: CachedURLResponse) {
        if let response = cached.response as? HTTPURLResponse {
            self.init(response, body: cached.data)
        } else {
            var fields = HeaderFields()
            if let type = cached.response.mimeType { fields["Content-Type"] = type }
            self.init(status: 200, fields: fields, body: BodyStream(ByteChunk(cached.data)))
        }
    }
}

extension HeaderFields {
    /// The fields of an answer; lines of one name come joined, as the URL loading system has them.
    public init(_ response: HTTPURLResponse) {
        var fields: [String: String] = [:]
        for (name, value) in response.allHeaderFields {
            guard let name = name as? String else { continue }
            fields[name] = (value as? String) ?? String(describing: value)
        }
        self.init(fields)
    }
}

extension CacheResponse {
    /// The head as the URL loading system has it, or nil when Foundation cannot express it.
    public func urlResponse(url: URL) -> HTTPURLResponse? {
        HTTPURLResponse(
            url: url,
            statusCode: status,
            httpVersion: "HTTP/1.1",
            headerFields: fields.dictionary
        )
    }

    /// Reads the body and gives the whole as the URL loading system's cache has it.
    ///
    /// - Throws: `CacheError.Code.bodyTooLarge` when the body is longer than `limit`.
    public func cachedURLResponse(url: URL, upTo limit: ByteCount) async throws
        -> CachedURLResponse?
    {
        guard let head = urlResponse(url: url) else { return nil }
        let chunk = try await body.collect(upTo: limit)
        return cachedURLResponse(head, chunk)
    }

    func cachedURLResponse(_ head: HTTPURLResponse, _ chunk: ByteChunk) -> CachedURLResponse {
        CachedURLResponse(
            response: head,
            data: Data(chunk),
            userInfo: info.userInfo.flatMap(UserInfo.decode),
            storagePolicy: .allowed
        )
    }
}

/// The user info of a stored answer, as bytes the cache can keep: a property list.
enum UserInfo {
    static func encode(_ userInfo: [AnyHashable: Any]?) -> ByteChunk? {
        guard let userInfo, !userInfo.isEmpty else { return nil }
        let data = try? PropertyListSerialization.data(
            fromPropertyList: userInfo,
            format: .binary,
            options: 0
        )
        return data.map { ByteChunk($0) }
    }

    static func decode(_ chunk: ByteChunk) -> [AnyHashable: Any]? {
        let list = try? PropertyListSerialization.propertyList(
            from: Data(chunk),
            options: [],
            format: nil
        )
        return list as? [AnyHashable: Any]
    }
}

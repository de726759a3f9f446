public import CacheEngine
public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

extension CacheResponse {
    /// Creates a response from one of the URL loading system and its body.
    ///
    /// URLSession decodes the body and leaves the fields as they came. Without `Content-Encoding` and
    /// `Content-Length` they describe such a body; a coded body is recognised by its length.
    ///
    /// The fields that `EngineURLCache` renames for URLSession on Linux get their names back.
    public init(_ response: HTTPURLResponse, body: Data) {
        var fields = DeliverableFields.restored(HeaderFields(response))
        if !body.isEmpty, SessionExchange.coding(of: fields) != nil,
            fields["Content-Length"] != String(body.count)
        {
            fields.remove("Content-Encoding")
            fields.remove("Content-Length")
        }
        self.init(
            status: response.statusCode,
            fields: fields,
            body: BodyStream(ByteChunk(body))
        )
    }

    /// Creates a response from a stored one of the URL loading system, whose body may be decoded, as
    /// that of `init(_:body:)`.
    ///
    /// A response that is not HTTP becomes a 200.
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
    /// Creates the fields of a response.
    ///
    /// The URL loading system has joined lines with the same name.
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
    /// Makes a head for the URL loading system; `nil` if Foundation cannot represent it.
    public func urlResponse(url: URL) -> HTTPURLResponse? {
        HTTPURLResponse(
            url: url,
            statusCode: status,
            httpVersion: "HTTP/1.1",
            headerFields: fields.dictionary
        )
    }

    /// Reads the body and makes a response for the URL loading system's cache.
    ///
    /// Returns `nil` if Foundation cannot represent the head.
    ///
    /// - Throws: `CacheError.Code.bodyTooLarge` if the body is longer than `limit`.
    public func cachedURLResponse(url: URL, upTo limit: ByteCount) async throws
        -> CachedURLResponse?
    {
        guard let head = urlResponse(url: url) else { return nil }
        let chunk = try await body.collect(upTo: limit)
        return cachedURLResponse(head, chunk)
    }

    /// A coded body has its length stated, by which `init(_:body:)` recognises it.
    func cachedURLResponse(_ head: HTTPURLResponse, _ chunk: ByteChunk) -> CachedURLResponse {
        var head = head
        if !chunk.isEmpty, SessionExchange.coding(of: fields) != nil,
            !fields.contains("Content-Length"), let url = head.url
        {
            var coded = self
            coded.fields["Content-Length"] = String(chunk.count)
            head = coded.urlResponse(url: url) ?? head
        }
        return CachedURLResponse(
            response: head,
            data: Data(chunk),
            userInfo: info.userInfo.flatMap(UserInfo.decode),
            storagePolicy: info.place == .memoryOnly ? .allowedInMemoryOnly : .allowed
        )
    }
}

extension HTTPCache.ManualStoreOptions {
    /// Creates the options that a response of the URL loading system names; `nil` if it must not be
    /// stored.
    init?(_ cached: CachedURLResponse) {
        self.init()
        switch cached.storagePolicy {
        case .allowed: break
        case .allowedInMemoryOnly: place = .memoryOnly
        case .notAllowed: return nil
        @unknown default: return nil
        }
        userInfo = UserInfo.encode(cached.userInfo)
    }
}

/// The user info of a stored response, encoded as a property list that the cache can keep.
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

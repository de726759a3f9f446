import HTTPCaching
import Platform

/// One download of a response to a file.
struct Download {
    let request: CacheRequest
    let path: String
    let onProgress: (@Sendable (DownloadProgress) -> Void)?
    let respond: @Sendable (CacheRequest) async throws -> CacheResponse
    /// Returns the stored response in place of one whose body broke off, or throws the error.
    let standIn: @Sendable (CacheResponse, any Error) async throws -> CacheResponse

    /// Writes the body to a file of its own, and puts that in place.
    func whole() async throws -> CacheResponse {
        try checkPath()
        return try await put(respond(request))
    }

    /// Continues what an earlier download left; if it breaks off, leaves to a later one the bytes
    /// that can be continued.
    ///
    /// A request that is no GET or has a Range, and one whose file another download is writing, is
    /// carried out by `whole`.
    func resumed() async throws -> CacheResponse {
        try checkPath()
        guard request.method == .get, !request.fields.contains("Range"),
            let part = try PartialFile(beside: path)
        else { return try await whole() }
        do {
            if let tag = part.tag(of: request.url),
                let response = try await rest(of: part, tag)
            {
                return response
            }
            return try await write(respond(identityRequest), to: part)
        } catch {
            part.leave(request.url)
            throw error
        }
    }

    /// The rest of the response, or what the origin answers in its place; `nil` if the bytes do not
    /// fit, and the download begins anew.
    ///
    /// A stored response that stands in for the origin is older than the bytes, which therefore stay.
    private func rest(of part: PartialFile, _ tag: String) async throws -> CacheResponse? {
        var request = identityRequest
        request.fields["Range"] = "bytes=\(part.count)-"
        request.fields["If-Range"] = tag
        let response = try await respond(request)
        guard response.status == 206 else {
            if response.info.source == .fallback, !Mutant.givesBytesForAStandIn.isOn {
                if let error = response.info.fallbackError { throw error }
                return try await put(response)
            }
            return response.status == 416 ? nil : try await write(response, to: part)
        }
        guard !response.fields.contains("Content-Encoding"),
            let size = Self.size(of: response, from: part.count),
            response.fields["ETag"] == tag || Mutant.joinsPartsOfOtherVersions.isOn
        else { return nil }
        return try await finish(response, in: part, size: size)
    }

    /// Writes a response that is not a continuation.
    ///
    /// Only a 200 replaces the bytes: an error of the origin must not destroy them.
    private func write(_ response: CacheResponse, to part: PartialFile) async throws
        -> CacheResponse
    {
        guard response.status == 200 else {
            part.leave(request.url)
            return try await put(response)
        }
        try part.begin(request.url, tag: Self.strongTag(of: response))
        return try await finish(response, in: part, size: response.body.count)
    }

    private func finish(
        _ response: CacheResponse,
        in part: PartialFile,
        size: Int?
    ) async throws -> CacheResponse {
        var response = response
        try await part.append(response.body) { report($0, of: size) }
        guard size == nil || part.count == size else {
            part.remove()
            throw CacheError(
                .bodyTruncated,
                detail: "The parts of the body of `\(PlainText.excerpt(url: request.url))` have "
                    + "\(part.count) bytes together, not \(size ?? 0)"
            )
        }
        try part.finish(as: path)
        if response.status == 206 {
            response.status = 200
            response.fields.remove("Content-Range")
            response.fields.remove("Content-Digest")
            response.fields["Content-Length"] = String(part.count)
        }
        response.body = .empty
        return response
    }

    private func put(_ response: CacheResponse) async throws -> CacheResponse {
        guard (200..<300).contains(response.status) || Mutant.downloadsErrorPages.isOn else {
            return response
        }
        var response = response
        let file = try BodyFile(
            creating: path + ".part-\(UInt64.random(in: 0...UInt64.max))",
            permissions: 0o666
        )
        do {
            let size = response.body.count
            var count = 0
            try await file.append(response.body) {
                count += $0
                report(count, of: size)
            }
            try file.move(to: path)
        } catch {
            unlink(file.path)
            return try await put(standIn(response, error))
        }
        response.body = .empty
        return response
    }

    /// Refuses a directory before anything is loaded; its name could not be given to a file.
    private func checkPath() throws(CacheError) {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return }
        throw CacheError(
            .storageFailed,
            detail: "The target of the download \(path) is a directory; name a file in it"
        )
    }

    private func report(_ count: Int, of size: Int?) {
        onProgress?(DownloadProgress(receivedBytes: count, totalBytes: size))
    }

    /// The request for content as it is: parts of coded content cannot be joined with decoded ones.
    private var identityRequest: CacheRequest {
        var request = request
        if !request.fields.contains("Accept-Encoding") {
            request.fields["Accept-Encoding"] = "identity"
        }
        return request
    }

    /// The size of the whole body, if the response is all of it from `start` on.
    private static func size(of response: CacheResponse, from start: Int) -> Int? {
        var field = response.fields["Content-Range"] ?? ""
        return field.withUTF8 { bytes in
            guard let content = ContentRange(ByteRun(UnsafeRawBufferPointer(bytes))),
                let range = content.range, let size = content.bodySize,
                range.lowerBound == start, range.upperBound == size
            else { return nil }
            return size
        }
    }

    /// The tag under which the bytes can be continued; `nil` if they cannot be.
    ///
    /// A body without a length may have been decoded on its way, and its bytes would then be no part
    /// of what the origin sends. Coded content is not continued, as the rest may come without the
    /// coding.
    private static func strongTag(of response: CacheResponse) -> String? {
        guard response.body.count != nil, !response.fields.contains("Content-Encoding"),
            var field = response.fields["ETag"]
        else { return nil }
        let isStrong = field.withUTF8 { bytes in
            EntityTag(ByteRun(UnsafeRawBufferPointer(bytes)))?.isStrong == true
        }
        return isStrong ? field : nil
    }
}

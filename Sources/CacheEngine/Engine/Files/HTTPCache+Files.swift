import Platform

/// Bodies as files.
extension HTTPCache {
    /// Answers the request and writes the body to `path`.
    ///
    /// A file at `path` is replaced only once the body is complete, and only by a 2xx. Any other
    /// response, such as a redirect, a 304 to a condition of the request's own or an error, leaves
    /// the file as it is, and is returned with its body.
    ///
    /// With `resuming`, a download that breaks off leaves its bytes beside the file, in `path.part`
    /// and `path.part-of`, also when the process ends. The next one that resumes asks for the rest
    /// (`Range`), and for the whole if the response has changed meanwhile (`If-Range`). Only a
    /// response with a strong `ETag`, a known length and no coding can be continued; others begin
    /// anew.
    ///
    /// If the body breaks off and the policy lets a stored response take its place, that is
    /// written; a download that resumes keeps its bytes instead.
    ///
    /// `onProgress` is called after each piece is written, by the task that writes it.
    ///
    /// - Returns: The response. A 2xx has an empty body, as it was written; one that was continued is
    ///   a 200 with the fields of the rest, in which an origin may leave out `Content-Type` and
    ///   others.
    public func download(
        _ request: CacheRequest,
        to path: String,
        policy: CachePolicy? = nil,
        resuming: Bool = false,
        onProgress: (@Sendable (DownloadProgress) -> Void)? = nil
    ) async throws -> CacheResponse {
        let download = Download(request: request, path: path, onProgress: onProgress) {
            try await self.respond(to: $0, policy: policy)
        } standIn: {
            try await self.standIn(for: $0, to: request, policy: policy, after: $1)
        }
        return resuming ? try await download.resumed() : try await download.whole()
    }

    /// Answers the request and lends the body to `read` as a read-only file, which is then deleted.
    ///
    /// If the body breaks off and the policy lets a stored response take its place, that is lent.
    ///
    /// `read` runs on the caller's actor.
    nonisolated(nonsending) public func withBodyFile<Result>(
        for request: CacheRequest,
        policy: CachePolicy? = nil,
        _ read:
            nonisolated(nonsending) (
                _ path: String, _ response: CacheResponse
            ) async throws -> Result
    ) async throws -> Result {
        var response = try await respond(to: request, policy: policy)
        let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        let path = "\(folder)/cache-body-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
        defer { unlink(path) }
        do {
            try await BodyFile(creating: path, permissions: 0o600).append(response.body)
        } catch {
            response = try await standIn(for: response, to: request, policy: policy, after: error)
            unlink(path)
            try await BodyFile(creating: path, permissions: 0o600).append(response.body)
        }
        chmod(path, 0o400)
        response.body = .empty
        return try await read(path, response)
    }
}

/// The state of a download to a file.
public struct DownloadProgress: Hashable, Sendable {
    /// The number of bytes in the file, with those of an earlier download that was continued.
    public let receivedBytes: Int
    /// The length of the whole body; `nil` if it is known at its end only.
    public let totalBytes: Int?
}

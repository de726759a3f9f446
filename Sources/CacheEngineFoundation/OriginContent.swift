internal import CacheEngine
internal import Foundation

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The content of a request to an origin, in a form that URLSession sends as it is.
///
/// URLSession on Linux reads streams on the one queue of all its sessions, where a slow stream
/// would stop them. So content that does not fit into memory goes through a file. An upload task,
/// unlike a data task, adds no field that describes the content.
enum OriginContent {
    case none
    case data(Data)
    case file(URL)

    /// The most bytes that are kept in memory.
    private static let memoryBytesMax = 1 << 20

    /// Reads the content to its end.
    ///
    /// - Throws: `CacheError.Code.requestInvalid` if its length is another than the announced one.
    init(_ body: BodyStream?) async throws {
        guard let body else {
            self = .none
            return
        }
        if let chunk = body.availableChunk {
            self = .data(Data(chunk))
            return
        }
        var start = Data()
        var countBytes = 0
        var file: (url: URL, handle: FileHandle)?
        do {
            for try await chunk in body {
                countBytes += chunk.count
                start.append(Data(chunk))
                guard start.count > Self.memoryBytesMax else { continue }
                let open = try file ?? Self.newFile()
                file = open
                try open.handle.write(contentsOf: start)
                start = Data()
            }
            try Self.checkEnd(of: body, after: countBytes)
            try file?.handle.write(contentsOf: start)
            try file?.handle.close()
        } catch {
            if let file { try? FileManager.default.removeItem(at: file.url) }
            throw error
        }
        self = file.map { .file($0.url) } ?? .data(start)
    }

    /// The task that sends the content.
    func task(with request: URLRequest, in session: URLSession) -> URLSessionDataTask {
        switch self {
        case .none: session.dataTask(with: request)
        case .data(let data): session.uploadTask(with: request, from: data)
        case .file(let url): session.uploadTask(with: request, fromFile: url)
        }
    }

    /// Removes the file; called when the head of the response has arrived.
    func release() {
        if case .file(let url) = self { try? FileManager.default.removeItem(at: url) }
    }

    /// Throws if the content did not end by itself, or not where it should.
    ///
    /// Some sequences end quietly when their reader is cancelled.
    private static func checkEnd(of body: BodyStream, after countBytes: Int) throws {
        try Task.checkCancellation()
        guard let announced = body.count, announced != countBytes else { return }
        throw CacheError(
            .requestInvalid,
            detail: "The request's content has \(countBytes) bytes, "
                + "but \(announced) were announced"
        )
    }

    private static func newFile() throws -> (url: URL, handle: FileHandle) {
        let url = FileManager.default.temporaryDirectory
            .appendingPathComponent("upload-" + UUID().uuidString)
        let isCreated = FileManager.default.createFile(
            atPath: url.path,
            contents: nil,
            attributes: [.posixPermissions: 0o600]
        )
        guard isCreated else {
            throw CacheError(
                .originFailed,
                detail: "The file \(url.path) for the content of a request cannot be created"
            )
        }
        return (url, try FileHandle(forWritingTo: url))
    }
}

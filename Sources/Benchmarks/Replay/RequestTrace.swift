/// Recorded requests: each names an object and the object's size in bytes.
package struct RequestTrace: Sendable {
    package struct Request: Hashable, Sendable {
        /// The number of the object in the order of the first requests.
        ///
        /// Not the identity in the file: the same requests in another form have the same ratios.
        package let object: UInt64
        package let sizeBytes: UInt32
    }

    package private(set) var requests: [Request] = []
    /// The number of distinct objects requested.
    package private(set) var objectCount = 0
    /// The bytes of all distinct objects; each counts once, with its first size.
    package private(set) var distinctBytes = 0
    /// Lines of a log that have no request in their quotes.
    package private(set) var skippedLines = 0
    /// Requests of a log whose line has no length; each is taken as 0 bytes.
    package private(set) var requestsWithoutSize = 0
    /// Whether a size above 1 was given; a form without sizes gives 1.
    package private(set) var hasSizes = false
    /// The numbers of the objects, by their identities in the file.
    private var numbers: [UInt64: UInt64] = [:]

    /// The bytes between two calls of `progress`; they take less than a second.
    private static let progressBytes = 16 << 20

    package init() {}

    /// Reads a file, also one that gzip or zstd has packed, or the standard input (`-`).
    ///
    /// Without a format, the name and the first bytes decide. `progress` is called now and then with
    /// the bytes read so far, and with the size of a file that is not packed.
    package init(
        path: String,
        format: TraceFormat? = nil,
        progress: (_ bytes: Int, _ total: Int?) -> Void = { _, _ in }
    ) throws {
        let source = TraceSource(path: path)
        var reader = TraceReader(source, format)
        var (bytesRead, bytesTold) = (0, 0)
        try source.read { piece, total in
            try reader.take(piece)
            bytesRead += piece.count
            guard bytesRead - bytesTold >= Self.progressBytes else { return }
            bytesTold = bytesRead
            progress(bytesRead, total)
        }
        self = try reader.finish()
        numbers = [:]
    }

    /// Adds a request of the object with this identity.
    package mutating func append(object: UInt64, sizeBytes: UInt64) {
        // An entry cannot declare more than four gigabytes.
        let size = UInt32(clamping: sizeBytes)
        let next = UInt64(objectCount)
        let number = numbers[object, default: next]
        requests.append(Request(object: number, sizeBytes: size))
        if size > 1 { hasSizes = true }
        if number == next {
            numbers[object] = number
            objectCount += 1
            distinctBytes += Int(size)
        }
    }

    mutating func skipLine() { skippedLines += 1 }

    mutating func noteMissingSize() { requestsWithoutSize += 1 }
}

import HTTPCaching

/// A stored response that is read where it is stored, while a closure runs.
///
/// `HTTPCache.withImmediateResponse(to:policy:_:)` lends it. It cannot be kept; `response` returns
/// a copy that can.
public struct BorrowedResponse: ~Copyable {
    private enum Content {
        /// A plain hit. The entry and the services outlive the closure that reads this value.
        case hit(PlainHit, Unmanaged<ByteStorage>, Unmanaged<Services>)
        case made(CacheResponse)
    }

    private let content: Content

    @inline(__always)
    init(_ hit: PlainHit, of entry: borrowing Entry, _ services: Unmanaged<Services>) {
        content = .hit(hit, .passUnretained(entry.storage), services)
    }

    init(_ response: CacheResponse) { content = .made(response) }

    /// The status code.
    public var status: Int {
        switch content {
        case .hit(let hit, _, _): hit.status
        case .made(let response): response.status
        }
    }

    /// The way in which the cache answered the request.
    public var info: CacheInfo {
        switch content {
        case .hit(let hit, _, _): CacheInfo(hit)
        case .made(let response): response.info
        }
    }

    /// The length of the body in bytes.
    public var bodyCount: Int {
        switch content {
        case .hit(let hit, _, _): hit.body.count
        case .made(let response): response.body.count ?? 0
        }
    }

    /// The response as a value that may leave the closure; it shares the stored bytes.
    public var response: CacheResponse {
        switch content {
        case .hit(let hit, let storage, let services):
            services._withUnsafeGuaranteedRef {
                let entry = Entry(unchecked: storage.takeUnretainedValue())
                return ResponseBuilder($0).response(hit, of: entry)
            }
        case .made(let response): response
        }
    }

    /// Calls `visit` with the name and value of each field line, as bytes that must not escape.
    public func forEachLine(
        _ visit: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void
    ) {
        forEachRun { FieldCursor.forEachLine(in: $0, visit) }
    }

    /// Calls `read` with the encoded field lines, run by run.
    package func forEachRun(_ read: (UnsafeRawBufferPointer) -> Void) {
        switch content {
        case .hit(let hit, let storage, let services):
            storage._withUnsafeGuaranteedRef {
                let bytes = $0.unsafeBytes(hit.fields.upperBound)
                let lines = UnsafeRawBufferPointer(rebasing: bytes[hit.fields])
                if hit.isNotModified {
                    Conditional.forEachNotModifiedRun(ofStored: lines, read)
                } else {
                    read(lines)
                }
            }
            services._withUnsafeGuaranteedRef { ResponseBuilder($0).ownLines(hit).forEachRun(read) }
        case .made(let response): response.fields.forEachRun(read)
        }
    }

    /// Calls `read` with the body, as bytes that must not escape.
    ///
    /// The bytes are those of the store, except for a response to several ranges, which is joined
    /// first.
    @inlinable
    public func withBody<Value, Failure: Error>(
        _ read: (UnsafeRawBufferPointer) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        var result: Result<Value, Failure>?
        readBody { bytes in
            do throws(Failure) {
                result = .success(try read(bytes))
            } catch {
                result = .failure(error)
            }
        }
        // `readBody` has called the closure once.
        return try result.unsafelyUnwrapped.get()
    }

    /// Calls `read` once with the body.
    ///
    /// Not generic, so that other modules call the code that was specialised here.
    @usableFromInline
    func readBody(_ read: (UnsafeRawBufferPointer) -> Void) {
        switch content {
        case .hit(let hit, let storage, _):
            storage._withUnsafeGuaranteedRef {
                let bytes = $0.unsafeBytes(hit.body.upperBound)
                read(UnsafeRawBufferPointer(rebasing: bytes[hit.body]))
            }
        case .made(let response): response.body.inMemory.withUnsafeBytes(read)
        }
    }
}

extension BodyStream {
    /// The bytes of a body that is in memory, whole or in parts; empty for any other body.
    fileprivate var inMemory: ByteChunk {
        switch content {
        case .chunk(let chunk): chunk
        case .parts(let parts): ByteChunk(joining: parts.map(\.inMemory))
        case .stored, .source: .empty
        }
    }
}

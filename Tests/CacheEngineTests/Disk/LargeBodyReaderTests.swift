import CacheEngine
import CacheTestSupport
import Testing

/// A client that reads more slowly than the origin sends, while a body that is too large for memory
/// is written to a file and in the end not kept.
@Suite struct LargeBodyReaderTests {
    enum Ending: CaseIterable, Sendable {
        /// The origin sends more than it announced.
        case overlong
        /// The device fails when the file is complete.
        case unsynchronized
    }

    private static let pieces = (0..<40).map { number in
        ByteChunk([UInt8](repeating: UInt8(number), count: 64 << 10))
    }

    @Test(arguments: Ending.allCases)
    func readerBehindGetsEveryByteOfABodyThatIsNotKept(ending: Ending) async throws {
        let files = FaultyFileSystem(seed: 1)
        let source = ManualBody()
        let announced = Self.pieces.reduce(0) { $0 + $1.count }
        let fields: HeaderFields =
            ending == .overlong
            ? ["Cache-Control": "max-age=60", "Content-Length": "\(announced)"]
            : ["Cache-Control": "max-age=60"]
        let origin = ScriptedOrigin { _, _ in
            OriginResponse(status: 200, fields: fields, body: source.stream())
        }
        let stage = try await Stage(origin) {
            $0.memory = .megabytes(4)
            $0.backing = .disk(path: "/cache", capacity: .megabytes(128))
            $0.backing.fileSystem = .replaced(files)
            $0.backing.durability = .onSegmentSeal
            $0.originLimits.windowSize = .bytes(128 << 10)
        }
        if ending == .unsynchronized { files.plan.synchronizeError = 1_000 }
        let response = try await stage.cache.respond(to: CacheRequest(url: Stage.url))
        var iterator = response.body.makeAsyncIterator()
        source.feed(Self.pieces[0])
        var read = try await iterator.next()?.array ?? []
        #expect(read == Self.pieces[0].array)
        for piece in Self.pieces.dropFirst() { source.feed(piece) }
        if ending == .overlong { source.feed("more") }
        source.finish()
        // The flight ends although its reader is far behind.
        await stage.cache.waitUntilIdle()
        while let piece = try await iterator.next() { read += piece.array }
        #expect(read == Self.pieces.flatMap(\.array))
        #expect(try await stage.holds() == false)
        let hasFailed = await stage.cache.statistics.storageErrors > 0
        #expect(hasFailed == (ending == .unsynchronized))
        await stage.end()
    }

    /// The body is complete; the shutdown does not cut off its reader.
    @Test func readerBehindGetsEveryByteAfterTheShutdown() async throws {
        let source = ManualBody()
        let origin = ScriptedOrigin { _, _ in
            OriginResponse(
                status: 200,
                fields: ["Cache-Control": "max-age=60"],
                body: source.stream()
            )
        }
        let stage = try await Stage(origin) {
            $0.memory = .megabytes(4)
            $0.backing = .disk(path: "/cache", capacity: .megabytes(128))
            $0.backing.fileSystem = .replaced(FaultyFileSystem(seed: 1))
            $0.originLimits.windowSize = .bytes(128 << 10)
        }
        let response = try await stage.cache.respond(to: CacheRequest(url: Stage.url))
        var iterator = response.body.makeAsyncIterator()
        source.feed(Self.pieces[0])
        var read = try await iterator.next()?.array ?? []
        for piece in Self.pieces.dropFirst() { source.feed(piece) }
        source.finish()
        await stage.cache.waitUntilIdle()
        await stage.end()
        while let piece = try await iterator.next() { read += piece.array }
        #expect(read == Self.pieces.flatMap(\.array))
    }
}

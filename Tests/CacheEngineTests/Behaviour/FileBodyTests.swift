import CacheEngine
import CacheTestSupport
import Foundation
import Testing

/// A21: bodies as files.
@Suite struct FileBodyTests {
    let folder: Folder

    init() throws { folder = try Folder() }

    func text(_ path: String) throws -> String {
        String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
    }

    @Test("A21: a download streams once; the second is a hit and writes the same file")
    func downloadStreamsOnce() async throws {
        let stage = try await Stage()
        let request = CacheRequest(url: Stage.url)
        for (round, source) in [CacheInfo.Source.origin, .fresh].enumerated() {
            let path = folder.path("file \(round)")
            let response = try await stage.cache.download(request, to: path)
            await stage.cache.waitUntilIdle()
            #expect(response.info.source == source)
            #expect(response.status == 200)
            #expect(try await response.body.collect().isEmpty)
            #expect(try text(path) == "hello")
        }
        #expect(stage.origin.count == 1)
        #expect(folder.files.count == 2, "Nothing is left beside them")
        await stage.end()
    }

    @Test("A21: a download that breaks off leaves the file of before, and nothing else")
    func brokenDownloadLeavesTheOldFile() async throws {
        let origin = ScriptedOrigin { _, _ in
            let body = ManualBody()
            body.feed("half")
            body.fail(CacheError(.originFailed, detail: "On purpose"))
            return OriginResponse(
                status: 200,
                fields: ["Content-Length": "8"],
                body: body.stream()
            )
        }
        let stage = try await Stage(origin)
        let path = folder.path("file")
        try Data("old".utf8).write(to: URL(filePath: path))
        await #expect(throws: CacheError.self) {
            try await stage.cache.download(CacheRequest(url: Stage.url), to: path)
        }
        #expect(try text(path) == "old")
        #expect(folder.files.count == 1)
        await stage.end()
    }

    /// A stage whose origin breaks off the body of each response but the first.
    private func stageOfBrokenBodies() async throws -> Stage {
        let stage = try await Stage(
            ScriptedOrigin { _, number in
                guard number > 1 else {
                    return .whole(fields: ["Cache-Control": "max-age=60"], body: "stored")
                }
                let body = ManualBody()
                body.feed("half")
                body.fail(CacheError(.bodyTruncated, detail: "On purpose"))
                let fields: HeaderFields = ["Content-Length": "8", "Cache-Control": "max-age=60"]
                return OriginResponse(status: 200, fields: fields, body: body.stream())
            }
        )
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        return stage
    }

    @Test(
        "A10, A21: a stored response stands in for a body that breaks off, if the policy allows it"
    )
    func storedBodyStandsIn() async throws {
        let stage = try await stageOfBrokenBodies()
        let request = CacheRequest(url: Stage.url)
        let path = folder.path("file")
        let policy = CachePolicy.standard.with { $0.fallback = .always() }
        let response = try await stage.cache.download(request, to: path, policy: policy)
        #expect(response.info.source == .fallback)
        #expect((response.info.fallbackError as? CacheError)?.code == .bodyTruncated)
        #expect(try text(path) == "stored")
        #expect(folder.files == [path])
        try await stage.cache.withBodyFile(for: request, policy: policy) { path, response in
            let lent = try text(path)
            #expect(lent == "stored" && response.info.source == .fallback)
        }
        #expect(stage.origin.count == 3)
        await stage.end()
    }

    @Test(
        "A10, A21: no stored response stands in where the policy forbids it",
        arguments: [.never, .always(maximumStaleness: .zero)] as [CachePolicy.Fallback]
    )
    func storedBodyDoesNotStandIn(fallback: CachePolicy.Fallback) async throws {
        let stage = try await stageOfBrokenBodies()
        let request = CacheRequest(url: Stage.url)
        let policy = CachePolicy.standard.with { $0.fallback = fallback }
        await #expect(throws: CacheError.self) {
            try await stage.cache.download(request, to: folder.path("file"), policy: policy)
        }
        #expect(folder.files.isEmpty)
        await #expect(throws: CacheError.self) {
            try await stage.cache.withBodyFile(for: request, policy: policy) { _, _ in }
        }
        await stage.end()
    }

    @Test("A10, A21: a reader that is cancelled gets no stored response, and writes no file")
    func storedBodyDoesNotStandInForACancelledReader() async throws {
        let open = ManualBody()
        open.feed("half")
        let stage = try await Stage(
            ScriptedOrigin { _, number in
                let fields: HeaderFields = ["Cache-Control": "max-age=60"]
                guard number > 1 else { return .whole(fields: fields, body: "stored") }
                return OriginResponse(status: 200, fields: fields, body: open.stream())
            }
        )
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        let path = folder.path("file")
        // Its body goes from the origin to this task alone.
        let policy = CachePolicy.standard.with {
            $0.fallback = .always()
            $0.writes = false
        }
        let download = Task {
            try await stage.cache.download(
                CacheRequest(url: Stage.url),
                to: path,
                policy: policy,
                onProgress: { _ in withUnsafeCurrentTask { $0?.cancel() } }
            )
        }
        await #expect(throws: (any Error).self) { try await download.value }
        #expect(folder.files.isEmpty)
        open.finish()
        await stage.end()
    }

    @Test("A21: only a 2xx replaces a file", arguments: [302, 404, 503], [false, true])
    func otherStatusLeavesTheFile(status: Int, resuming: Bool) async throws {
        let stage = try await Stage(ScriptedOrigin { _, _ in .whole(status: status, body: "page") })
        let path = folder.path("file")
        try Data("old".utf8).write(to: URL(filePath: path))
        let request = CacheRequest(url: Stage.url)
        let response = try await stage.cache.download(request, to: path, resuming: resuming)
        #expect(response.status == status)
        #expect(try await response.body.collect().text == "page")
        #expect(try text(path) == "old")
        #expect(folder.files == [path])
        await stage.end()
    }

    @Test(
        "A21: the file has the permissions of a new file of this process",
        arguments: [false, true]
    )
    func umaskAppliesToTheFile(resuming: Bool) async throws {
        let stage = try await Stage()
        let request = CacheRequest(url: Stage.url)
        let path = folder.path("file")
        _ = try await stage.cache.download(request, to: path, resuming: resuming)
        try Data("new".utf8).write(to: URL(filePath: folder.path("other")))
        let modes = try ["file", "other"].map {
            try FileManager.default.attributesOfItem(atPath: folder.path($0))[.posixPermissions]
                as? Int
        }
        #expect(modes[0] != nil && modes[0] == modes[1])
        await stage.end()
    }

    @Test("A21: a directory is refused before anything is loaded", arguments: [false, true])
    func directoryIsRefusedAtOnce(resuming: Bool) async throws {
        let stage = try await Stage()
        let request = CacheRequest(url: Stage.url)
        await #expect {
            try await stage.cache.download(request, to: folder.path(""), resuming: resuming)
        } throws: {
            "\($0)".contains("is a directory; name a file in it")
        }
        #expect(stage.origin.count == 0)
        await stage.end()
    }

    @Test("A21: a path that cannot be written is a clear error")
    func unwritablePathIsAClearError() async throws {
        let stage = try await Stage()
        await #expect {
            try await stage.cache.download(
                CacheRequest(url: Stage.url),
                to: folder.path("no such folder/file")
            )
        } throws: {
            ($0 as? CacheError)?.code == .storageFailed
        }
        await stage.end()
    }

    @Test("A21: a body is lent as a read-only file, which is gone afterwards")
    func bodyIsLentAsAFile() async throws {
        let stage = try await Stage()
        let request = CacheRequest(url: Stage.url)
        for source in [CacheInfo.Source.origin, .fresh] {
            let path = try await stage.cache.withBodyFile(for: request) { path, response in
                #expect(response.info.source == source)
                #expect(try text(path) == "hello")
                let attributes = try FileManager.default.attributesOfItem(atPath: path)
                #expect(attributes[.posixPermissions] as? Int == 0o400)
                // The file must not change when its entry is removed or replaced.
                try await stage.cache.removeAll()
                #expect(try text(path) == "hello")
                _ = try await stage.cache.store(
                    CacheResponse(
                        status: 200,
                        fields: ["Cache-Control": "max-age=60"],
                        body: BodyStream(ByteChunk("hello"))
                    ),
                    for: request
                )
                return path
            }
            #expect(FileManager.default.fileExists(atPath: path) == false)
        }
        await stage.end()
    }

    @Test("A21: the file is gone too when its reader throws")
    func lentFileIsGoneAfterAnError() async throws {
        struct Failure: Error {}
        let stage = try await Stage()
        var lent = ""
        do {
            try await stage.cache.withBodyFile(for: CacheRequest(url: Stage.url)) { path, _ in
                lent = path
                throw Failure()
            }
            Issue.record("The error is passed on")
        } catch is Failure {}
        #expect(!lent.isEmpty)
        #expect(FileManager.default.fileExists(atPath: lent) == false)
        await stage.end()
    }

    @MainActor
    @Test("A21: a body is lent on the caller's own actor, whose state it may change")
    func bodyIsLentOnTheCallersActor() async throws {
        let stage = try await Stage()
        var lent = ""
        let request = CacheRequest(url: Stage.url)
        let status = try await stage.cache.withBodyFile(for: request) { path, response in
            MainActor.assertIsolated()
            lent = try text(path)
            return response.status
        }
        #expect(status == 200)
        #expect(lent == "hello")
        await stage.end()
    }
}

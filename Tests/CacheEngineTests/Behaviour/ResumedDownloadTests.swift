import CacheEngine
import CacheTestSupport
import Foundation
import Synchronization
import Testing

/// A21: a download that broke off is continued.
@Suite struct ResumedDownloadTests {
    let folder: Folder

    init() throws { folder = try Folder() }

    private var path: String { folder.path("file") }
    private let request = CacheRequest(url: Stage.url)

    private func text(_ path: String) throws -> String {
        String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
    }

    private func download(
        _ stage: Stage,
        _ onProgress: (@Sendable (DownloadProgress) -> Void)? = nil
    ) async throws -> CacheResponse {
        defer { Task { await stage.cache.waitUntilIdle() } }
        return try await stage.cache.download(
            request,
            to: path,
            resuming: true,
            onProgress: onProgress
        )
    }

    /// Breaks a download off after `cut` bytes.
    private func breakOff(_ stage: Stage, _ file: ServedFile, at cut: Int) async {
        file.cutNext(at: cut)
        await #expect(throws: CacheError.self) { try await download(stage) }
        await stage.cache.waitUntilIdle()
    }

    @Test("A21: only the rest is asked for, and the file is whole")
    func brokenDownloadIsContinued() async throws {
        let file = ServedFile("0123456789")
        let stage = try await Stage(file.origin)
        await breakOff(stage, file, at: 4)
        #expect(try text(path + ".part") == "0123")
        let steps = Mutex<[DownloadProgress]>([])
        let response = try await download(stage) { step in steps.withLock { $0.append(step) } }
        #expect(response.status == 200)
        #expect(response.fields["Content-Range"] == nil)
        #expect(response.fields["Content-Length"] == "10")
        #expect(try text(path) == "0123456789")
        let second = stage.origin.requests[1].fields
        #expect(second["Range"] == "bytes=4-")
        #expect(second["If-Range"] == "\"1\"")
        let told = steps.withLock { $0 }
        #expect(told.last?.receivedBytes == 10)
        #expect(told.allSatisfy { $0.receivedBytes > 4 && $0.totalBytes == 10 })
        #expect(folder.files == [path], "Nothing is left beside the file")
        await stage.end()
    }

    @Test("A21: a response that changed meanwhile is loaded from its beginning")
    func changedResponseBeginsAnew() async throws {
        let file = ServedFile("0123456789")
        let stage = try await Stage(file.origin)
        await breakOff(stage, file, at: 4)
        file.change("abcdefgh")
        _ = try await download(stage)
        #expect(try text(path) == "abcdefgh")
        #expect(folder.files == [path])
        await stage.end()
    }

    @Test(
        "A21: without a strong tag nothing is left, and nothing is continued",
        arguments: [nil, "W/\"1\""]
    )
    func responseWithoutAStrongTagBeginsAnew(tag: String?) async throws {
        let file = ServedFile("0123456789", tag: tag)
        let stage = try await Stage(file.origin)
        await breakOff(stage, file, at: 4)
        #expect(folder.files.isEmpty)
        _ = try await download(stage)
        #expect(stage.origin.requests.last?.fields["Range"] == nil)
        #expect(try text(path) == "0123456789")
        await stage.end()
    }

    @Test(
        "A21: a 416, another part or a part of another version begins anew",
        arguments: [
            (416, "bytes */10", "\"1\""), (206, "bytes 5-9/10", "\"1\""),
            (206, "bytes 4-8/10", "\"1\""), (206, "bytes 4-9/10", "\"2\""),
            (206, "nonsense", "\"1\""),
        ]
    )
    func partThatDoesNotFitBeginsAnew(status: Int, range: String, tag: String) async throws {
        let file = ServedFile("0123456789")
        // Not stored: the engine itself rejects some of these parts.
        let stage = try await Stage(file.origin) { $0.policy = .bypass }
        await breakOff(stage, file, at: 4)
        file.answerRanges { _ in
            .whole(
                status: status,
                fields: ["Content-Range": range, "ETag": tag],
                body: status == 416 ? "" : "XXXXX"
            )
        }
        _ = try await download(stage)
        #expect(try text(path) == "0123456789")
        #expect(folder.files == [path])
        await stage.end()
    }

    @Test("A21: an error of the origin costs no byte that is there")
    func errorLeavesThePart() async throws {
        let file = ServedFile("0123456789")
        let stage = try await Stage(file.origin)
        await breakOff(stage, file, at: 4)
        file.answerRanges { _ in .whole(status: 503, body: "busy") }
        let response = try await download(stage)
        #expect(response.status == 503)
        #expect(try await response.body.collect().text == "busy")
        #expect(!folder.files.contains(path))
        #expect(try text(path + ".part") == "0123")
        file.answerRanges(nil)
        _ = try await download(stage)
        #expect(try text(path) == "0123456789")
        #expect(stage.origin.requests.last?.fields["Range"] == "bytes=4-")
        await stage.end()
    }

    @Test(
        "A21: an older response that stands in for the origin costs no byte that is there",
        arguments: [true, false]
    )
    func standInLeavesThePart(isReachable: Bool) async throws {
        let file = ServedFile("0123456789")
        let stage = try await Stage(file.origin) { $0.policy.fallback = .always(statuses: [503]) }
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        file.change("abcdefgh")
        await breakOff(stage, file, at: 4)
        #expect(try text(path + ".part") == "abcd")
        if isReachable {
            stage.origin.follow { _, _ in .whole(status: 503, body: "busy") }
            let response = try await download(stage)
            #expect(response.info.source == .fallback)
            #expect(try text(path) == "0123456789")
        } else {
            stage.origin.cutOff()
            await #expect(throws: CacheError.self) { try await download(stage) }
            #expect(!folder.files.contains(path))
        }
        #expect(try text(path + ".part") == "abcd")
        stage.origin.follow { request, _ in file.answer(request) }
        _ = try await download(stage)
        #expect(try text(path) == "abcdefgh")
        await stage.end()
    }

    @Test("A21: coded bytes are not continued, nor is coded content joined")
    func codedContentBeginsAnew() async throws {
        let file = ServedFile("0123456789", coding: "gzip")
        let stage = try await Stage(file.origin) { $0.policy = .bypass }
        await breakOff(stage, file, at: 4)
        #expect(folder.files.isEmpty)
        file.setCoding(nil)
        await breakOff(stage, file, at: 4)
        file.setCoding("gzip")
        _ = try await download(stage)
        #expect(stage.origin.requests.map { $0.fields["Range"] } == [nil, nil, "bytes=4-", nil])
        #expect(try text(path) == "0123456789")
        await stage.end()
    }

    @Test("A21: a 304 to the caller's own condition leaves the file", arguments: [false, true])
    func notModifiedLeavesTheFile(resuming: Bool) async throws {
        let file = ServedFile("0123456789")
        let stage = try await Stage(file.origin)
        _ = try await download(stage)
        await stage.cache.waitUntilIdle()
        var conditional = request
        conditional.fields["If-None-Match"] = "\"1\""
        let response = try await stage.cache.download(conditional, to: path, resuming: resuming)
        #expect(response.status == 304)
        #expect(try text(path) == "0123456789")
        #expect(folder.files == [path])
        await stage.end()
    }

    @Test("A21: files of another URL, without a note or without bytes are not continued")
    func foreignPartsAreNotContinued() async throws {
        let notes = [
            "http://example.com/b\n\"1\"\n", "", "\(Stage.url)\n\"1\"", "\(Stage.url)\n\"1\"\n",
        ]
        for (index, note) in notes.enumerated() {
            let file = ServedFile("0123456789")
            let stage = try await Stage(file.origin)
            let isEmpty = index == notes.count - 1
            try Data((isEmpty ? "" : "XXXX").utf8).write(to: URL(filePath: path + ".part"))
            try Data(note.utf8).write(to: URL(filePath: path + ".part-of"))
            _ = try await download(stage)
            #expect(stage.origin.requests.map { $0.fields["Range"] } == [nil], "\(note)")
            #expect(try text(path) == "0123456789")
            #expect(folder.files == [path])
            await stage.end()
        }
    }

    @Test("A21: of two downloads to one file at once each is whole")
    func twoDownloadsAtOnceAreWhole() async throws {
        let body = String(repeating: "0123456789", count: 20_000)
        let file = ServedFile(body)
        let stage = try await Stage(file.origin) { $0.policy = .bypass }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 1...8 { group.addTask { _ = try await self.download(stage) } }
            try await group.waitForAll()
        }
        #expect(try text(path) == body)
        #expect(folder.files == [path])
        await stage.end()
    }

    @Test("A21: a download that left its part leaves alone the part of the next one")
    func brokenDownloadLeavesThePartOfAnother() async throws {
        let bodies = [ManualBody(), ManualBody()]
        let origin = ScriptedOrigin { _, number in
            OriginResponse(
                status: number == 1 ? 203 : 200,
                fields: ["ETag": "\"\(number)\""],
                body: bodies[number - 1].stream(count: 10)
            )
        }
        let stage = try await Stage(origin) { $0.policy = .bypass }
        let first = Task { try await self.download(stage) }
        bodies[0].feed("01234")
        // Only a 200 is written to the part: this body has a file of its own.
        #expect(await eventually { folder.files.contains { $0.hasPrefix(path + ".part-") } })
        let second = Task { try await self.download(stage) }
        bodies[1].feed("abcde")
        #expect(await eventually { (try? text(path + ".part")) == "abcde" })
        bodies[0].fail(CacheError(.originFailed, detail: "On purpose"))
        await #expect(throws: CacheError.self) { try await first.value }
        bodies[1].feed("fghij")
        bodies[1].finish()
        #expect(try await second.value.status == 200)
        #expect(try text(path) == "abcdefghij")
        #expect(folder.files == [path])
        await stage.end()
    }

    @Test("A21: a file is always one version as a whole, wherever downloads break off")
    func fileIsNeverAMixture() async throws {
        for seed in 0..<150 {
            var random = SeededRandom(seed: UInt64(seed))
            let folder = try Folder()
            let path = folder.path("file")
            let file = ServedFile("")
            let stage = try await Stage(file.origin) {
                if seed.isMultiple(of: 2) { $0.policy = .bypass }
            }
            var versions: [String] = []
            for step in 0..<12 {
                if step == 0 || Int.random(in: 0..<4, using: &random) == 0 {
                    let letter = String(UnicodeScalar(UInt8(ascii: "a") + UInt8(step)))
                    let count = Int.random(in: 1...40, using: &random)
                    versions.append(String(repeating: letter, count: count))
                    file.change(versions[versions.count - 1])
                }
                let isCut = Bool.random(using: &random)
                if isCut { file.cutNext(at: Int.random(in: 0...40, using: &random)) }
                let result = try? await stage.cache.download(request, to: path, resuming: true)
                await stage.cache.waitUntilIdle()
                stage.clock.advance(seconds: 61)
                guard result != nil else { continue }
                let written = try text(path)
                #expect(versions.contains(written), "seed \(seed), step \(step): \(written)")
                if !isCut { #expect(written == versions.last, "seed \(seed), step \(step)") }
            }
            await stage.end()
        }
    }
}

/// An origin with one file, which answers ranges and breaks off on demand.
private final class ServedFile: Sendable {
    private struct State {
        var body: String
        var tag: String?
        var coding: String?
        var version = 1
        var cut: Int?
        var rangeAnswer: (@Sendable (OriginRequest) -> OriginResponse)?
    }

    private let state: Mutex<State>

    init(_ body: String, tag: String? = "\"1\"", coding: String? = nil) {
        state = Mutex(State(body: body, tag: tag, coding: coding))
    }

    var origin: ScriptedOrigin { ScriptedOrigin { [self] request, _ in answer(request) } }

    func change(_ body: String) {
        state.withLock {
            $0.body = body
            $0.version += 1
            $0.tag = "\"\($0.version)\""
        }
    }

    /// Names a coding in the next responses.
    func setCoding(_ coding: String?) { state.withLock { $0.coding = coding } }

    /// Breaks the next body off after so many bytes.
    func cutNext(at count: Int) { state.withLock { $0.cut = count } }

    /// Answers requests with a range by `answer`; by the rules of HTTP if it is `nil`.
    func answerRanges(_ answer: (@Sendable (OriginRequest) -> OriginResponse)?) {
        state.withLock { $0.rangeAnswer = answer }
    }

    func answer(_ request: OriginRequest) -> OriginResponse {
        let (file, cut) = state.withLock { state in (state, state.cut.take()) }
        let range = request.fields["Range"]
        if range != nil, let answer = file.rangeAnswer { return answer(request) }
        if file.tag != nil, request.fields["If-None-Match"] == file.tag {
            return OriginResponse(status: 304, fields: ["ETag": file.tag ?? ""])
        }
        var fields: HeaderFields = ["Cache-Control": "max-age=60"]
        if let tag = file.tag { fields["ETag"] = tag }
        if let coding = file.coding { fields["Content-Encoding"] = coding }
        var (status, content) = (200, file.body)
        let isCurrent = [nil, file.tag].contains(request.fields["If-Range"])
        if isCurrent, let start = range?.dropFirst(6).dropLast().description, let start = Int(start)
        {
            guard start < content.count else {
                return .whole(
                    status: 416,
                    fields: ["Content-Range": "bytes */\(content.count)"],
                    body: ""
                )
            }
            status = 206
            fields["Content-Range"] = "bytes \(start)-\(content.count - 1)/\(content.count)"
            content = String(content.dropFirst(start))
        }
        fields["Content-Length"] = String(content.count)
        let body = ManualBody()
        if let cut, cut < content.count {
            if cut > 0 { body.feed(String(content.prefix(cut))) }
            body.fail(CacheError(.originFailed, detail: "On purpose"))
        } else {
            if !content.isEmpty { body.feed(content) }
            body.finish()
        }
        return OriginResponse(
            status: status,
            fields: fields,
            body: body.stream(count: content.count)
        )
    }
}

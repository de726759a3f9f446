import CacheEngine
import CacheTestSupport
import Testing

@testable import never_changes
@testable import offline_client
@testable import only_when_changed

/// A30: the three uses of a download cache that the examples show.
@Suite struct RecipeTests {
    static let url = "http://example.com/a"

    let folder: Folder

    init() throws { folder = try Folder() }

    var directory: String { folder.path("cache") }

    @Test("A30: offline: what was read once is read again with the origin cut off, and restarted")
    func offlineRecipe() async throws {
        let origin = ScriptedOrigin { request, number in
            switch request.url {
            case "http://example.com/moved":
                return .whole(status: 302, fields: ["Location": Self.url])
            default:
                return .whole(fields: ["Cache-Control": "max-age=0"], body: "issue \(number)")
            }
        }
        let reader = try await OfflineReader(directory: directory, origin: origin)
        #expect(try await reader.read(Self.url) == ("issue 1", false))
        #expect(try await reader.read(Self.url) == ("issue 2", false), "Online it is current")
        _ = try await reader.read("http://example.com/moved")

        origin.cutOff()
        #expect(try await reader.read(Self.url) == ("issue 2", true))
        await #expect(throws: CacheError.self) { try await reader.read("http://example.com/never") }
        await reader.close()

        let restarted = try await OfflineReader(directory: directory, origin: origin)
        #expect(try await restarted.read(Self.url) == ("issue 2", true))
        #expect(try await restarted.read("http://example.com/moved").isStale)
        #expect(try await restarted.readKept(Self.url) == "issue 2")
        #expect(try await restarted.readKept("http://example.com/never") == nil)
        await restarted.close()
    }

    @Test("A30: only when changed: one conditional request a read, a body only after a change")
    func onlyWhenChangedRecipe() async throws {
        let resource = Resource(["Cache-Control": "max-age=3600"])
        let origin = ScriptedOrigin { request, _ in resource.answer(request) }
        let watcher = try await ChangeWatcher(directory: directory, origin: origin)
        #expect(try await watcher.read(Self.url) == ("one", true))
        #expect(try await watcher.read(Self.url) == ("one", false))
        await watcher.close()

        let restarted = try await ChangeWatcher(directory: directory, origin: origin)
        #expect(try await restarted.read(Self.url) == ("one", false))
        resource.change(body: "two", tag: "\"2\"")
        #expect(try await restarted.read(Self.url) == ("two", true))
        #expect(try await restarted.read(Self.url) == ("two", false))
        let conditions = origin.requests.map { $0.fields["If-None-Match"] }
        #expect(conditions == [nil, "\"1\"", "\"1\"", "\"1\"", "\"2\""])

        origin.cutOff()
        await restarted.close()
    }

    @Test("A30: never changes: one request in all, across restarts, whatever the origin says")
    func neverChangesRecipe() async throws {
        let origin = CountingOrigin()
        for _ in 0..<3 {
            let library = try await AssetLibrary(directory: directory, origin: origin)
            for _ in 0..<5 { #expect(try await library.asset(Self.url) == "<svg/>") }
            await library.close()
        }
        #expect(origin.count == 1)
    }

    @Test("A30: never changes: an error of the first load is not kept")
    func neverChangesKeepsNoError() async throws {
        let origin = ScriptedOrigin { _, number in
            guard number > 1 else { return .whole(status: 404, body: "not found") }
            return .whole(fields: ["Cache-Control": "no-store"], body: "<svg/>")
        }
        let library = try await AssetLibrary(directory: directory, origin: origin)
        #expect(try await library.asset(Self.url) == nil)
        for _ in 0..<3 { #expect(try await library.asset(Self.url) == "<svg/>") }
        #expect(origin.count == 2)
        await library.close()
    }
}

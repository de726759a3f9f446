import Testing

/// The folders of the room Engine use each other only along the arrows that docs/ARCHITECTURE.md
/// draws.
@Suite struct FolderArrowTests {
    private struct Arrow: Hashable {
        let from: String
        let to: String
    }

    private static let room = "Sources/CacheEngine/Engine/"
    /// The drawing's word for any folder.
    private static let all = "all"

    @Test func everyFolderLooksOnlyWhereTheDrawingSays() throws {
        let drawn = Self.arrows(in: try SourceFile.read("docs/ARCHITECTURE.md"))
        let uses = SourceFile.uses(among: try SourceFile.all(in: ["Sources/CacheEngine/Engine"]))
        for use in Self.offences(among: uses, drawn) {
            Issue.record("\(use.user) names \(use.name), which lives in \(use.home)")
        }
        #expect(Self.unused(drawn, by: uses) == [], "drawn, and not used")
        #expect(drawn.count > 10)
        #expect(uses.count > 100)
    }

    @Test func wrongArrowIsFound() {
        let document = """
            ## The room Engine

            ```
             Request ─▶ Storing, Fetch     its steps
                 all ─▶ Services
            ```
            """
        let drawn = Self.arrows(in: document)
        #expect(drawn.count == 3)
        func file(_ path: String, _ text: String) -> SourceFile {
            SourceFile(path: Self.room + path, text: text)
        }
        var files = [
            file("Services.swift", "struct Services { let name = \"Runner\" }"),
            file("Request/Runner.swift", "struct Runner { let store: Store }"),
            file("Fetch/Fetch.swift", "struct Fetch { let services: Services }"),
            file("Storing/Store.swift", "// No Fetch.\nstruct Store { let kind: Kind.Fetch }"),
        ]
        var uses = SourceFile.uses(among: files)
        #expect(Self.offences(among: uses, drawn) == [])
        #expect(Self.unused(drawn, by: uses) == [Arrow(from: "Request", to: "Fetch")])

        files.append(file("Storing/Queued/Queue.swift", "struct Queue { let fetch: Fetch }"))
        uses = SourceFile.uses(among: files)
        #expect(Self.offences(among: uses, drawn).map(\.name) == ["Fetch"])
    }

    @Test func memberOfTheFaceKnowsIt() {
        let uses = SourceFile.uses(among: [
            SourceFile(path: "a", text: "final class HTTPCache { let options: HTTPCache.Options }"),
            SourceFile(path: "b", text: "extension HTTPCache {\n    public struct Options {}\n}"),
            SourceFile(path: "c", text: "extension HTTPCache {\n    func load() {}\n}"),
        ])
        #expect(
            uses == [
                SourceFile.Use(user: "a", name: "Options", home: "b"),
                SourceFile.Use(user: "c", name: "HTTPCache", home: "a"),
            ]
        )
    }

    /// The uses along which the drawing has no arrow.
    private static func offences(
        among uses: [SourceFile.Use],
        _ drawn: Set<Arrow>
    ) -> [SourceFile.Use] {
        uses.filter { use in
            let needed = Self.arrow(of: use)
            return needed.from != needed.to && !drawn.contains(needed)
                && !drawn.contains(Arrow(from: all, to: needed.to))
        }
    }

    private static func unused(_ drawn: Set<Arrow>, by uses: [SourceFile.Use]) -> Set<Arrow> {
        drawn.subtracting(uses.map { arrow(of: $0) }).filter { $0.from != all }
    }

    private static func arrow(of use: SourceFile.Use) -> Arrow {
        Arrow(from: folder(of: use.user), to: folder(of: use.home))
    }

    /// The folder below the room; a file outside of any stands for itself and its extensions.
    private static func folder(of path: String) -> String {
        String(path.dropFirst(room.count).prefix { $0 != "/" && $0 != "+" && $0 != "." })
    }

    /// The arrows of the first block below the heading of the room.
    private static func arrows(in document: String) -> Set<Arrow> {
        guard let block = document.firstMatch(of: /## The room Engine\n+```\n([^`]*)/) else {
            return []
        }
        var arrows: Set<Arrow> = []
        for line in block.1.split(separator: "\n") {
            guard let match = line.firstMatch(of: /^ *(\w+) +─▶ (\w+(?:, \w+)*)/) else { continue }
            for target in match.2.split(whereSeparator: { ", ".contains($0) }) {
                arrows.insert(Arrow(from: String(match.1), to: String(target)))
            }
        }
        return arrows
    }
}

import Foundation
import Testing

/// Files that name each other in a circle can only be understood together.
@Suite struct FileCircleTests {
    private static let circleFilesMax = 2
    private static let nesting = "extension HTTPCache {"

    @Test func noCircleOfFilesInTheEngineIsLargerThanTwo() throws {
        let files = try SourceFile.all(in: ["Sources/CacheEngine/Engine"])
        let names = Self.uses(among: files)
        for path in names.keys.sorted() {
            let circle = Self.reachable(from: path, names).filter {
                Self.reachable(from: $0, names).contains(path)
            }
            #expect(circle.count <= Self.circleFilesMax, "\(path) in \(circle.sorted())")
        }
        #expect(files.count > 10)
    }

    @Test func circleIsFound() {
        let names: [String: Set<String>] = ["a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]]
        #expect(Self.reachable(from: "a", names) == ["a", "b", "c"])
        #expect(Self.reachable(from: "d", names) == ["a", "b", "c"])
    }

    /// The other files with a type that each file names.
    private static func uses(among files: [SourceFile]) -> [String: Set<String>] {
        var home: [String: String] = [:]
        for file in files {
            for type in file.topLevelTypes { home[type] = file.path }
            // Types that the cache's face nests.
            if file.code.contains(Self.nesting) {
                for match in file.code.matches(of: /(?m)^    public struct ([A-Z]\w+)/) {
                    home[String(match.1)] = file.path
                }
            }
            // `typealias` stands beside the types.
            for match in file.code.matches(of: /(?m)^typealias ([A-Z]\w+)/) {
                home[String(match.1)] = file.path
            }
        }
        var uses: [String: Set<String>] = [:]
        for file in files {
            // `HTTPCache.Configuration` names the configuration, and no part of the face.
            let code = file.code.replacing(/"(?:[^"\\]|\\.)*"/, with: "")
                .replacing(Self.nesting, with: "")
                .replacing("HTTPCache.", with: "")
            // A name behind a dot is a member of another type.
            let types = code.matches(of: /(?:^|[^.\w])([A-Z]\w+)/).map { String($0.1) }
            uses[file.path] = Set(types.compactMap { home[$0] }).subtracting([file.path])
        }
        return uses
    }

    /// The files that one leads to, itself included if it is part of a circle.
    private static func reachable(
        from start: String,
        _ uses: [String: Set<String>]
    ) -> Set<String> {
        var reached: Set<String> = []
        var open = uses[start] ?? []
        while let next = open.popFirst() {
            guard reached.insert(next).inserted else { continue }
            open.formUnion(uses[next] ?? [])
        }
        return reached
    }
}

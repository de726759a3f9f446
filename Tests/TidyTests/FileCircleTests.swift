import Testing

/// Files that name each other in a circle can only be understood together.
@Suite struct FileCircleTests {
    private static let circleFilesMax = 2

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
        Dictionary(grouping: SourceFile.uses(among: files), by: \.user)
            .mapValues { Set($0.map(\.home)) }
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

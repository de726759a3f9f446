import Foundation
import Testing

/// The adapters are a package that the check does not build; their parts must agree by name.
@Suite struct AdapterTests {
    @Test func theEngineDependsOnNoOtherPackage() throws {
        #expect(!(try SourceFile.read("Package.swift")).contains(".package("))
    }

    @Test func everyAdapterIsDeclaredTestedAndListed() throws {
        let manifest = try SourceFile.read("Adapters/Package.swift")
        let readme = try SourceFile.read("Adapters/README.md")
        let libraries = manifest.matches(of: /\.library\(name: "(\w+)"/).map { String($0.1) }
        #expect(libraries.count >= 8)
        for name in libraries {
            #expect(manifest.contains(#"name: "\#(name)Tests""#), "\(name) has no test target")
            let tests = try SourceFile.all(in: ["Adapters/Tests/\(name)Tests"])
            #expect(tests.contains { $0.text.contains("@Test") }, "\(name) has no test")
            #expect(readme.contains("(Sources/\(name)/"), "Adapters/README.md lacks \(name)")
        }
    }

    /// The adapter has no list of its own: a metric of the engine is in it at once.
    @Test func metricsAdapterNamesNoMetric() throws {
        let path = "Sources/CacheEngine/Engine/Observing/StatisticsTable.swift"
        let names = Self.plainLiterals(try SourceFile.read(path))
        let adapter = try SourceFile.all(in: ["Adapters/Sources/CacheMetrics"]).map(\.code)
            .joined(separator: "\n")
        #expect(adapter.contains("statistics.metrics"))
        #expect(Self.plainLiterals(adapter).intersection(names) == [])
        #expect(names.count > 40)
    }

    /// The string literals of lower-case letters and underscores.
    private static func plainLiterals(_ code: String) -> Set<String> {
        Set(code.matches(of: /"([a-z][a-z_]*)"/).map { String($0.1) })
    }

    @Test func everyFolderIsATarget() throws {
        let manifest = try SourceFile.read("Adapters/Package.swift")
        for folder in ["Adapters/Sources", "Adapters/Tests"] {
            let root = SourceFile.packageRoot.appending(path: folder)
            for name in try FileManager.default.contentsOfDirectory(atPath: root.path()) {
                #expect(manifest.contains(#"name: "\#(name)""#), "\(folder)/\(name) is no target")
            }
        }
    }
}

import Foundation
import Testing

/// The rooms of the library, and the rooms whose types each may use.
@Suite struct RoomArrowTests {
    /// A new arrow is an architecture change: draw it in docs/ARCHITECTURE.md first.
    static let mayUse: [String: Set<String>] = [
        "Core": [],
        "Policy": ["Core"],
        "Memory": ["Core", "Policy"],
        "Disk": ["Core", "Policy"],
        "Flight": ["Core"],
        "Engine": ["Core", "Policy", "Memory", "Disk", "Flight"],
    ]

    @Test func everyRoomLooksOnlyWhereItMay() throws {
        let files = try SourceFile.all(in: ["Sources/CacheEngine"])
        var home: [String: String] = [:]
        var declared: [String: Set<String>] = [:]
        for file in files {
            for type in file.topLevelTypes { home[type] = file.room }
            declared[file.room ?? "", default: []].formUnion(file.declaredTypes)
        }
        for file in files {
            guard let room = file.room else { continue }
            let visible = try #require(Self.mayUse[room], "\(file.path) is in no known room")
            for name in file.typeNamesMentioned {
                guard let owner = home[name], owner != room, !visible.contains(owner),
                    declared[room]?.contains(name) != true
                else {
                    continue
                }
                Issue.record("\(file.path) names \(name), which lives in \(owner)")
            }
        }
        #expect(files.count > 10)
    }

    @Test func onlyTheEngineKnowsTheRulesOfHTTP() throws {
        for file in try SourceFile.all(in: ["Sources/CacheEngine"]) where file.room != "Engine" {
            #expect(!file.code.contains("import HTTPCaching"), "\(file.path)")
        }
    }

    @Test func onlyTheBridgeAndTheResultsOfBenchmarksImportFoundation() throws {
        let exceptions = [
            "Sources/CacheEngineFoundation/", "Sources/urlcache-peer/",
            "Sources/Benchmarks/Results/",
        ]
        for file in try SourceFile.all(in: ["Sources"]) {
            if exceptions.contains(where: file.path.hasPrefix) { continue }
            #expect(!file.code.contains("import Foundation"), "\(file.path)")
        }
    }

    /// `HTTPCaching` depends on nothing: its table of mutants reads the environment by itself.
    @Test func onlyThePlatformNamesTheCLibrary() throws {
        let exceptions: Set<String> = ["Sources/HTTPCaching/Mutant.swift"]
        for file in try SourceFile.all(in: ["Sources", "Tests"]) {
            if file.path.hasPrefix("Sources/Platform/") || exceptions.contains(file.path) {
                continue
            }
            if file.path.hasPrefix("Tests/TidyTests/") { continue }
            for library in ["Glibc", "Musl", "Darwin"] {
                #expect(!file.code.contains("import \(library)"), "\(file.path)")
            }
        }
    }

    /// Their declarations are public for the optimiser's sake, and belong to no product.
    @Test func noProductShowsTheRulesOrThePlatform() throws {
        for file in try SourceFile.all(in: ["Sources"]) {
            for target in ["HTTPCaching", "Platform"] {
                #expect(!file.code.contains("public import \(target)"), "\(file.path)")
            }
        }
    }

    @Test func theRulesOfHTTPKnowNoClockAndNoTask() throws {
        for file in try SourceFile.all(in: ["Sources/HTTPCaching"]) {
            for word in ["async ", "await ", "clock_gettime", "ContinuousClock"] {
                #expect(!file.code.contains(word), "\(file.path) says \(word)")
            }
        }
    }
}

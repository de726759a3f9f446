import Foundation
import Testing

/// House rules that the compiler cannot check.
@Suite struct HouseRuleTests {
    /// The tests over real sockets and processes, which keep their own time: they may pause.
    private static let pausing = [
        "Tests/CacheEngineRedisTests/", "Tests/CacheProxyTests/", "Tests/CurlOriginTests/",
        "Tests/RedisClientTests/",
    ]

    @Test func noTestWaitsForRealTime() throws {
        for file in try SourceFile.all(in: ["Tests", "Adapters/Tests"])
        where !file.path.contains("TidyTests") {
            let code = file.code
            let mayPause = Self.pausing.contains { file.path.hasPrefix($0) }
            let pauses = mayPause ? [] : ["poll(nil", "pause(milliseconds"]
            for word in ["Task.sleep", "usleep(", "nanosleep(", "Thread.sleep"] + pauses {
                #expect(!code.contains(word), "\(file.path) says \(word)")
            }
        }
    }

    /// A thread takes thousands of turns while another one has no processor; `eventually` counts
    /// seconds.
    @Test func noTestCountsTurnsUntilAConditionHolds() throws {
        let turns = /for _ in 0\.\.<[0-9_]{4,} where [^\n]*\{\s*await Task\.yield/
        for file in try SourceFile.all(in: ["Tests", "Adapters/Tests"]) {
            #expect(!file.code.contains(turns), "\(file.path) counts turns")
        }
    }

    /// The checked forms await inside the runtime's library, where ThreadSanitizer sees no order.
    @Test func noContinuationIsAwaitedWhereTheSanitizerIsBlind() throws {
        for file in try SourceFile.all(in: ["Sources", "Tests"])
        where !file.path.contains("TidyTests/HouseRuleTests") {
            #expect(!file.code.contains("withChecked"), "\(file.path) awaits out of sight")
        }
    }

    @Test func everyUnsafeConformanceStatesItsProof() throws {
        for file in try SourceFile.all(in: ["Sources", "Adapters"]) {
            let lines = file.text.split(separator: "\n", omittingEmptySubsequences: false)
            for (number, line) in lines.enumerated() {
                let isMark =
                    line.contains("@unchecked Sendable") || line.contains("nonisolated(unsafe)")
                guard isMark, !line.drop(while: { $0 == " " }).hasPrefix("//") else { continue }
                let comment = Self.commentAbove(number, in: lines)
                #expect(
                    comment.contains("unchecked Sendable")
                        || comment.contains("nonisolated(unsafe)"),
                    "\(file.path):\(number + 1) states no proof"
                )
            }
        }
    }

    /// The check on macOS runs these scripts with bash 3.2.
    @Test(arguments: ["perf/setup", "Tests/run"])
    func scriptsOfTheCheckNeedNoNewerBash(path: String) throws {
        let newer = /declare -[An]|local -n|mapfile|readarray|\$\{\w+(?:\^|,)/
        #expect(!(try SourceFile.read(path)).contains(newer))
    }

    /// Without its program a test fails or is left out, and the check would not say so.
    @Test func setupInstallsEveryProgramThatTestsStart() throws {
        let setup = try SourceFile.read("perf/setup")
        let list = try #require(setup.firstMatch(of: /for command in ([^;]+); do/)).1
        let installed = Set(list.split(separator: " ").map(String.init))
        // The system and the first step of the check have these; redis-cli comes with the server.
        let present: Set<String> = ["gzip", "make", "redis-cli", "swift"]
        let start = /(?:\bpath\(of: |ChildProcess\.run\(\[)"([a-z0-9-]+)"/
        let packed = /arguments: \["(\w+)", "(\w+)"\]\) func \w+\(program:/
        var started: Set<String> = []
        for file in try SourceFile.all(in: ["Tests"]) {
            for match in file.code.matches(of: start) { started.insert(String(match.1)) }
            for match in file.code.matches(of: packed) {
                started.formUnion([String(match.1), String(match.2)])
            }
        }
        #expect(started.isSuperset(of: ["zstd", "python3", "redis-server"]))
        #expect(started.subtracting(present).isSubset(of: installed))
    }

    /// A target that begins with no input spends a short run on its first lines.
    @Test func everyFuzzTargetHasACorpus() throws {
        for target in try SourceFile.all(in: ["Fuzz/Targets"]) {
            let name = target.path.split(separator: "/")[2].dropLast(".swift".count)
            let corpus = SourceFile.packageRoot.appending(path: "Fuzz/Corpus/\(name)").path()
            let seeds = try? FileManager.default.contentsOfDirectory(atPath: corpus)
            #expect(seeds?.isEmpty == false, "\(name) has no seed in Fuzz/Corpus")
        }
    }

    /// A draw is a system call and costs a tenth of a hit: the numbers exist before the clock.
    @Test func noPeerDrawsNumbersFromTheSystem() throws {
        for file in try SourceFile.all(in: ["Sources/urlcache-peer", "Sources/Benchmarks"]) {
            #expect(!file.code.contains("SystemRandomNumberGenerator"), "\(file.path)")
            #expect(!file.code.contains(/\.(?:random|shuffled?)\((?!.*using:)/), "\(file.path)")
        }
    }

    /// Prints the longest files; length is a reason to look, not a failure.
    @Test func longestFilesAreShown() throws {
        let files = try SourceFile.all(in: ["Sources", "Tests"])
        let longest = files.map { ($0.text.split(separator: "\n").count, $0.path) }
            .sorted { $0.0 > $1.0 }
        for (lines, path) in longest.prefix(8) { print("\(lines) lines: \(path)") }
        #expect(!files.isEmpty)
    }

    private static func commentAbove(_ number: Int, in lines: [Substring]) -> String {
        var comment = ""
        var above = number - 1
        while above >= 0 {
            let line = lines[above].drop { $0 == " " }
            guard line.hasPrefix("//") || line.hasPrefix("@") else { break }
            comment += line
            above -= 1
        }
        return comment
    }
}

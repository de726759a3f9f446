import Foundation

/// A short-lived program, run to its end in the package's folder.
enum ChildProcess {
    struct Outcome: Sendable {
        let status: Int32
        /// Standard output and standard error.
        let output: String
    }

    /// Runs `words`; the first one is a program's name or path.
    static func run(_ words: [String]) async throws -> Outcome {
        try await withUnsafeThrowingContinuation { continuation in
            // The wait blocks, and must not occupy a thread of Swift's pool.
            Thread.detachNewThread {
                continuation.resume(with: Result { try runAndWait(words) })
            }
        }
    }

    /// The path of a program of this package, which is built beside the tests.
    static func product(_ name: String) -> String {
        URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appending(path: name).path()
    }

    private static func runAndWait(_ words: [String]) throws -> Outcome {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = words
        process.currentDirectoryURL = SourceFile.packageRoot
        // If a make runs these tests, its settings must not reach the make that they run.
        process.environment = ProcessInfo.processInfo.environment
            .filter { !["MAKEFLAGS", "MFLAGS", "MAKELEVEL"].contains($0.key) }
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return Outcome(
            status: process.terminationStatus,
            output: String(decoding: output, as: UTF8.self)
        )
    }
}

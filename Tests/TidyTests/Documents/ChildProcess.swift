import Foundation

/// A short-lived program, run to its end in the package's folder.
enum ChildProcess {
    struct Outcome: Sendable {
        let status: Int32
        /// What it wrote, errors too.
        let output: String
    }

    /// Runs `words`; the first one is a program's name or path.
    static func run(_ words: [String]) async throws -> Outcome {
        try await withCheckedThrowingContinuation { continuation in
            // It blocks, and must not take a thread of Swift's pool from the other tests.
            Thread.detachNewThread {
                continuation.resume(with: Result { try runAndWait(words) })
            }
        }
    }

    /// A program of this package, which lies beside the tests.
    static func product(_ name: String) -> String {
        URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appending(path: name).path()
    }

    private static func runAndWait(_ words: [String]) throws -> Outcome {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = words
        process.currentDirectoryURL = SourceFile.packageRoot
        // A make that runs these tests must not speak to the make that they run.
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

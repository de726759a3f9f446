import Foundation
import Platform
import Testing

/// The program in its own process, for the length of one test.
final class RunningProgram: Sendable {
    let port: UInt16
    private let process: Process
    private let errors: FileHandle

    /// Starts the program on a free port, and returns once it listens.
    ///
    /// `output` becomes its standard output.
    init(_ arguments: [String], output: Pipe? = nil) async throws {
        let program = try #require(ProcessTests.program)
        process = Process()
        process.executableURL = program
        process.arguments = ["--listen", "127.0.0.1:0"] + arguments
        let pipe = Pipe()
        process.standardError = pipe
        if let output { process.standardOutput = output }
        errors = pipe.fileHandleForReading
        try process.run()
        let handle = errors
        let line = try await onThread { String(decoding: handle.availableData, as: UTF8.self) }
        // The line has the address, and perhaps a note after it.
        port = line.firstMatch(of: /127\.0\.0\.1:(\d+)/).flatMap { UInt16($0.1) } ?? 0
        guard port > 0 else { throw WireFailure("No port: \(line)") }
    }

    deinit { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

    func signal(_ number: Int32) { kill(process.processIdentifier, number) }

    /// Reads standard error until it has said `text`; returns `false` if it ends before.
    func says(_ text: String) async throws -> Bool {
        let handle = errors
        return try await onThread {
            var said = ""
            while !said.contains(text) {
                let bytes = handle.availableData
                guard !bytes.isEmpty else { return false }
                said += String(decoding: bytes, as: UTF8.self)
            }
            return true
        }
    }

    /// Sends the signal and returns the exit status.
    ///
    /// Standard error is read to its end first.
    func end(_ number: Int32 = SIGTERM) async throws -> Int32 {
        signal(number)
        return try await onThread { [process, errors] in
            _ = errors.readDataToEndOfFile()
            process.waitUntilExit()
            return process.terminationStatus
        }
    }
}

import CacheTestSupport
import Foundation
import Testing

/// The child process that is killed, and damage to the files that it leaves.
enum CrashChild {
    /// Starts the child, reads at least `lineCount` lines of its journal, kills it, and reads the
    /// rest.
    static func runAndKill(
        _ arguments: [String],
        afterLines lineCount: Int
    ) throws -> [Substring] {
        let child = Process()
        child.executableURL = childPath
        child.arguments = arguments
        let pipe = Pipe()
        child.standardOutput = pipe
        try child.run()
        var text = Data()
        var lines = 0
        var isKilled = false
        // Ends with the pipe: the child's end closes when it dies.
        while true {
            let more = pipe.fileHandleForReading.availableData
            if more.isEmpty { break }
            text += more
            lines += more.count { $0 == UInt8(ascii: "\n") }
            if lines >= lineCount, !isKilled {
                kill(child.processIdentifier, SIGKILL)
                isKilled = true
            }
        }
        child.waitUntilExit()
        #expect(isKilled, "the child ended by itself with status \(child.terminationStatus)")
        let journal = String(decoding: text, as: UTF8.self)
        // A last line without a line end is incomplete and does not count.
        let whole = journal.prefix(upTo: journal.lastIndex(of: "\n") ?? journal.startIndex)
        return whole.split(separator: "\n").map { Substring(String($0)) }
    }

    /// Changes one written byte of one segment.
    static func damage(_ directory: String, _ random: inout SeededRandom) throws {
        let names = FileManager.default.enumerator(atPath: directory)?.allObjects ?? []
        let segments = names.compactMap { $0 as? String }.filter { $0.hasSuffix(".seg") }.sorted()
        try #require(!segments.isEmpty)
        let name = segments[Int(random.next() % UInt64(segments.count))]
        let url = URL(filePath: directory + "/" + name)
        var bytes = try Data(contentsOf: url)
        let written = bytes.indices.filter { bytes[$0] != 0 }
        guard !written.isEmpty else { return }
        bytes[written[Int(random.next() % UInt64(written.count))]] ^= 1 << (random.next() % 8)
        // Overwrites in place, so that the file keeps its allocated blocks.
        let file = try FileHandle(forWritingTo: url)
        try file.write(contentsOf: bytes)
        try file.close()
    }

    /// The child is built beside the test's own executable.
    private static let childPath = URL(filePath: CommandLine.arguments[0])
        .deletingLastPathComponent().appending(path: "crash-child")
}

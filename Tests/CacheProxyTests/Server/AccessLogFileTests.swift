import Foundation
import Platform
import Synchronization
import Testing

@testable import CacheProxy

/// The access log on a pipe whose reader stands still, and on a file that cannot be opened again.
@Suite(.timeLimit(.minutes(1))) struct AccessLogFileTests {
    /// A named pipe whose reader reads when the test says so.
    private final class NamedPipe {
        let path = NSTemporaryDirectory() + "cache-proxy-pipe-\(UUID().uuidString)"
        private let reader: Int32

        init() throws {
            guard mkfifo(path, 0o600) == 0 else { throw WireFailure("mkfifo: \(errno)") }
            reader = open(path, O_RDONLY | O_NONBLOCK)
            guard reader >= 0 else { throw WireFailure("open: \(errno)") }
        }

        deinit {
            close(reader)
            unlink(path)
        }

        /// Reads the bytes that are there.
        func read() -> [UInt8] {
            var bytes: [UInt8] = []
            var part = [UInt8](repeating: 0, count: 64 * 1024)
            while true {
                let count = Platform.read(reader, &part, part.count)
                guard count > 0 else { return bytes }
                bytes += part[..<count]
            }
        }
    }

    /// Lines of 1 KiB, or of another size, that begin with their numbers.
    private static func lines(_ numbers: Range<Int>, of size: Int = 1_024) -> [UInt8] {
        numbers.flatMap { number in
            let digits = Array("\(number)".utf8)
            return digits + [UInt8](repeating: 0x2E, count: size - 1 - digits.count) + [0x0A]
        }
    }

    private static func write(_ numbers: Range<Int>, of size: Int = 1_024, to file: AccessLogFile) {
        lines(numbers, of: size).withUnsafeBytes { file.write($0) }
    }

    /// Reads until no line waits: each part that is read makes room for more.
    private static func drain(_ pipe: NamedPipe, of file: AccessLogFile) -> [UInt8] {
        var received: [UInt8] = []
        while true {
            let part = pipe.read()
            if part.isEmpty { return received }
            received += part
            write(0..<0, to: file)
        }
    }

    /// A call that waited for the reader would never return.
    @Test func linesBeyondTheLimitAreDroppedAndNoneIsCut() throws {
        let pipe = try NamedPipe()
        let told = Mutex<[String]>([])
        let file = try AccessLogFile(pipe.path) { line in told.withLock { $0.append(line) } }
        for start in stride(from: 0, to: 4_096, by: 64) {
            Self.write(start..<start + 64, to: file)
        }
        #expect(file.droppedLines > 0)
        #expect(told.withLock { $0 } == [AccessLogFile.loss(pipe.path, EAGAIN)])
        var received = Self.drain(pipe, of: file)
        Self.write(4_096..<4_097, to: file)
        received += pipe.read()
        #expect(received.count % 1_024 == 0)
        let kept = received.count / 1_024 - 1
        #expect(kept >= AccessLogFile.waitingBytesMax / 1_024)
        #expect(kept + file.droppedLines == 4_096)
        #expect(received == Self.lines(0..<kept) + Self.lines(4_096..<4_097))
        let reports = [
            AccessLogFile.loss(pipe.path, EAGAIN),
            AccessLogFile.count(pipe.path, file.droppedLines),
        ]
        #expect(told.withLock { $0 } == reports)
    }

    /// The pipe takes a part of a line, and the rest waits while the log is rotated.
    @Test func lineThatWasBegunIsWholeInTheNextFile() throws {
        let pipe = try NamedPipe()
        let file = try AccessLogFile(pipe.path)
        Self.write(0..<200, of: 1_000, to: file)
        unlink(pipe.path)
        file.reopen()
        Self.write(200..<201, of: 1_000, to: file)
        let next = try Data(contentsOf: URL(filePath: pipe.path))
        let received = pipe.read().count
        try #require(received % 1_000 > 0)
        let isWhole = [UInt8](next) == Self.lines(received / 1_000..<201, of: 1_000)
        #expect(isWhole && file.droppedLines == 0)
    }

    @Test func lineThatWasBegunGoesOnInTheSamePipe() throws {
        let pipe = try NamedPipe()
        let file = try AccessLogFile(pipe.path)
        Self.write(0..<200, of: 1_000, to: file)
        file.reopen()
        let received = Self.drain(pipe, of: file)
        let isWhole = received == Self.lines(0..<200, of: 1_000)
        #expect(isWhole)
    }

    /// Standard error may lead to the reader of the access log, which takes no line at that time.
    @Test func reportsWaitForTheirReaderAndFurtherOnesAreCounted() throws {
        let pipe = try NamedPipe()
        let writer = open(pipe.path, O_WRONLY | O_NONBLOCK)
        try #require(writer >= 0)
        defer { close(writer) }
        let lines = [UInt8](repeating: 0x2E, count: 1 << 20)
        let (logged, code) = lines.withUnsafeBytes { writeWithoutWaiting(writer, $0) }
        #expect(code == EAGAIN)
        let errors = ErrorOutput(writer)
        let kept = ErrorOutput.waitingBytesMax / 1_024
        for number in 0..<kept + 3 {
            errors.write(String(decoding: Self.lines(number..<number + 1), as: UTF8.self))
        }
        var received: [UInt8] = []
        while true {
            let part = pipe.read()
            if part.isEmpty { break }
            received += part
            errors.write("")
        }
        errors.write("last\n")
        received += pipe.read()
        let told = Self.lines(0..<kept) + Array((ErrorOutput.loss(3) + "last\n").utf8)
        // Compared apart: to describe how two megabytes differ takes a minute.
        let isTold = Array(received.dropFirst(logged)) == told
        #expect(isTold)
    }

    @Test(.enabled(if: FileManager.default.fileExists(atPath: "/dev/full")))
    func endReportsTheNumberOfDroppedLines() throws {
        let told = Mutex<[String]>([])
        let path = "/dev/full"
        let file = try AccessLogFile(path) { line in told.withLock { $0.append(line) } }
        for start in stride(from: 0, to: 4_096, by: 64) {
            Self.write(start..<start + 64, to: file)
        }
        #expect(file.droppedLines > 0)
        #expect(told.withLock { $0 } == [AccessLogFile.loss(path, ENOSPC)])
        file.finish()
        let count = AccessLogFile.count(path, file.droppedLines)
        #expect(told.withLock { $0.last } == count)
    }

    /// A terminal that is ready takes less than a piece in the end, and a write to the shell's own
    /// descriptor would wait.
    @Test func terminalThatIsNotReadHoldsUpNoWriter() throws {
        var screen: Int32 = -1
        var shared: Int32 = -1
        let isOpen = openpty(&screen, &shared, nil, nil, nil) == 0
        try #require(isOpen)
        defer { for descriptor in [screen, shared] { close(descriptor) } }
        let own = ownDescriptor(of: shared)
        try #require(own != shared && own >= 0)
        defer { close(own) }
        let bytes = Self.lines(0..<1_024)
        for _ in 0..<2 {
            let (count, code) = bytes.withUnsafeBytes { writeWithoutWaiting(own, $0) }
            #expect(count < bytes.count && code == EAGAIN)
        }
        #expect(fcntl(shared, F_GETFL) & O_NONBLOCK == 0)
    }

    @Test func descriptorOfNoTerminalIsKept() throws {
        let pipe = Pipe()
        let shared = pipe.fileHandleForWriting.fileDescriptor
        #expect(ownDescriptor(of: shared) == shared)
    }

    @Test func endWaitsForAReaderThatReads() throws {
        let pipe = try NamedPipe()
        let file = try AccessLogFile(pipe.path)
        Self.write(0..<128, to: file)
        var received = pipe.read()
        file.finish()
        received += pipe.read()
        #expect(received == Self.lines(0..<128))
    }

    @Test func failedReopeningIsReportedAndTheOpenFileStays() async throws {
        let folder = NSTemporaryDirectory() + "cache-proxy-logs-\(UUID().uuidString)"
        let moved = folder + ".moved"
        defer { ConfigurationReaderTests.remove(moved) }
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: false
        )
        let told = Mutex<[String]>([])
        try await withServer(
            ServerTests.echo,
            configure: { $0.accessLog = folder + "/log" },
            report: { line in told.withLock { $0.append(line) } }
        ) { server in
            try FileManager.default.moveItem(atPath: folder, toPath: moved)
            server.reopenLog()
            #expect(await eventually { told.withLock { !$0.isEmpty } })
            let client = try WireClient(server.port)
            #expect(try await client.exchange(ServerTests.get).status == 200)
        }
        let error = SystemError(.openLog, folder + "/log", code: ENOENT)
        #expect(told.withLock { $0 } == [error.description])
        let log = try String(contentsOfFile: moved + "/log", encoding: .utf8)
        #expect(log.contains("GET /a"))
    }

    /// Opening such a pipe in the usual way would wait for a reader.
    @Test func pipeWithoutAReaderIsAnError() throws {
        let path = NSTemporaryDirectory() + "cache-proxy-pipe-\(UUID().uuidString)"
        #expect(mkfifo(path, 0o600) == 0)
        defer { unlink(path) }
        let error = #expect(throws: SystemError.self) { try AccessLogFile(path) }
        #expect(error?.code == ENXIO)
        let line = error?.description ?? ""
        #expect(line.hasSuffix("; start the program that reads the pipe first"))
    }
}

import Platform
import Synchronization

/// The access log of all workers.
///
/// One call appends whole lines, so lines never mix. A pipe, a socket or a terminal gets no more
/// than it takes at once: the rest waits in memory for a later call, and lines beyond
/// `waitingBytesMax` are dropped and counted. No worker waits for a reader; it may wait for the disk
/// of a file.
final class AccessLogFile: Sendable {
    /// Bytes that wait for the reader of a pipe, or for room on a device.
    static let waitingBytesMax = 1 << 20
    /// The time for which the end of a worker waits for the reader.
    private static let endMilliseconds: Int64 = 500

    private struct State: Sendable {
        var output: LogOutput
        /// Lines that were not written; the beginning of the first one may be.
        var waiting: [UInt8] = []
        /// The beginning of that line, if it was written.
        var begun: [UInt8] = []
        /// Whether lines were dropped since none waited.
        var isDropping = false
        /// Dropped lines whose number has not been reported yet.
        var lost = 0
        var reports = ReportLimit()
        var counts = ReportLimit()

        /// Writes what waits; returns 0, or the error number for the rest.
        mutating func writeWaiting() -> Int32 {
            guard !waiting.isEmpty else { return 0 }
            let (count, code) = waiting.withUnsafeBytes { output.write($0) }
            note(written: waiting[..<count])
            waiting.removeFirst(count)
            guard waiting.isEmpty else { return code }
            waiting = []
            isDropping = false
            return 0
        }

        /// Writes lines after those that wait; returns an error number if they are dropped.
        mutating func take(_ lines: UnsafeRawBufferPointer) -> Int32? {
            var written = 0
            var code = writeWaiting()
            if code == 0 { (written, code) = output.write(lines) }
            note(written: lines[..<written])
            guard written < lines.count else { return nil }
            let rest = UnsafeRawBufferPointer(rebasing: lines[written...])
            let isTooMuch = waiting.count + rest.count > AccessLogFile.waitingBytesMax
            guard isTooMuch, !Mutant.keepsEveryLogLine.isOn else {
                waiting.append(contentsOf: rest)
                return nil
            }
            return code
        }

        /// Keeps the beginning of a line whose end was not written.
        private mutating func note(written bytes: some BidirectionalCollection<UInt8>) {
            if let end = bytes.lastIndex(of: 0x0A) {
                begun = Array(bytes[bytes.index(after: end)...])
            } else {
                begun += bytes
            }
        }

        /// Goes on with another output, and begins a line there anew; returns the output before it.
        mutating func change(to opened: LogOutput) -> LogOutput {
            if !opened.isSame(as: output) {
                waiting = begun + waiting
                begun = []
            }
            defer { output = opened }
            return output
        }
    }

    private let path: String
    private let report: @Sendable (String) -> Void
    private let state: Mutex<State>
    private let dropped = Atomic(0)

    /// Opens `path` for appending; `-` is standard output.
    ///
    /// `report` gets a line when lines begin to be dropped, one with their number when the reader
    /// has caught up, and one when the path cannot be opened again.
    init(
        _ path: String,
        report: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(SystemError) {
        self.path = path
        self.report = report
        guard let output = LogOutput(path) else { throw SystemError(.openLog, path) }
        state = Mutex(State(output: output))
    }

    deinit {
        let last = state.withLock { $0.output.descriptor }
        if last > 2 { closeDescriptor(last) }
    }

    /// The number of lines that were dropped.
    var droppedLines: Int { dropped.load(ordering: .relaxed) }

    /// Opens the path again, after the file was moved away; reports if the file that is open stays.
    func reopen() {
        guard path != "-" else { return }
        guard let opened = LogOutput(path) else { return report("\(SystemError(.openLog, path))") }
        let old = state.withLock { $0.change(to: opened) }
        closeDescriptor(old.descriptor)
    }

    /// Writes lines, after those that wait.
    func write(_ lines: UnsafeRawBufferPointer) {
        let line = state.withLock { state -> String? in
            guard let code = state.take(lines) else {
                guard state.lost > 0, !state.isDropping,
                    state.counts.admit(now: coarseMilliseconds()) != nil
                else { return nil }
                defer { state.lost = 0 }
                return Self.count(path, state.lost)
            }
            let count = lines.count { $0 == 0x0A }
            dropped.add(count, ordering: .relaxed)
            state.lost += count
            guard !state.isDropping else { return nil }
            state.isDropping = true
            let skipped = state.reports.admit(now: coarseMilliseconds())
            return skipped.map { Self.loss(path, code) + ReportLimit.note(skipped: $0) }
        }
        if let line { report(line) }
    }

    /// Writes what waits, for a limited time, because a worker ends; reports lines that are lost.
    func finish() {
        waitForReader()
        let lost = state.withLock { state in
            defer { state.lost = 0 }
            return state.lost
        }
        if lost > 0 { report(Self.count(path, lost)) }
    }

    private func waitForReader() {
        let end = coarseMilliseconds() + Self.endMilliseconds
        while true {
            let (code, descriptor) = state.withLock { ($0.writeWaiting(), $0.output.descriptor) }
            let left = end - coarseMilliseconds()
            guard code == EAGAIN, left > 0 else { return }
            var watched = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard poll(&watched, 1, Int32(left)) > 0 else { return }
        }
    }

    private static func place(_ path: String) -> String {
        path == "-" ? "on standard output" : path
    }

    /// The line about the number of dropped lines.
    static func count(_ path: String, _ lost: Int) -> String {
        "\(lost) lines of the access log \(place(path)) were dropped"
    }

    /// The line about dropped lines.
    static func loss(_ path: String, _ code: Int32) -> String {
        let reason =
            code == EAGAIN
            ? "its reader takes no more; look at the program that reads it"
            : String(cString: strerror(code))
        return "Lines of the access log \(place(path)) are dropped: \(reason)"
    }
}

/// The open descriptor of a log.
private struct LogOutput: Sendable {
    let descriptor: Int32
    /// Whether it is a regular file, which takes every byte or fails.
    private let isFile: Bool
    private let device: dev_t
    private let number: ino_t

    /// Opens a path for appending; `nil`, with `errno`, if the system refuses.
    ///
    /// A named pipe that no program reads is refused at once: opening it would wait for a reader.
    init?(_ path: String) {
        let flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        descriptor = path == "-" ? ownDescriptor(of: 1) : Platform.open(path, flags, 0o640)
        guard descriptor >= 0 else { return nil }
        var status = stat()
        isFile = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        (device, number) = (status.st_dev, status.st_ino)
    }

    /// Whether both lead to one file, or to one pipe.
    func isSame(as other: LogOutput) -> Bool {
        device == other.device && number == other.number
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> (count: Int, code: Int32) {
        writeWithoutWaiting(descriptor, bytes, pieceBytesMax: isFile ? bytes.count : pipeBytes)
    }
}

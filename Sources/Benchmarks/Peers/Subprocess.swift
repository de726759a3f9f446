import Platform

/// A child program that receives and sends lines.
package final class Subprocess {
    private let process: pid_t
    private let input: Int32
    private let output: Int32
    /// The program's standard error if it is kept.
    private let errors: Int32?
    private var buffered: [UInt8] = []
    private var isReaped = false

    /// Starts `arguments`, searching `PATH`; by default its standard error is ours.
    package init(_ arguments: [String], errors: ErrorOutput = .inherited) throws {
        guard let name = arguments.first else {
            throw UsageError("The command of the program is empty")
        }
        let toChild = try Self.makeSockets()
        let fromChild = try Self.makePipe()
        let errorsFromChild = errors == .kept ? try Self.makePipe() : nil
        var actions = Self.emptyActions()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, toChild.read, 0)
        posix_spawn_file_actions_adddup2(&actions, fromChild.write, 1)
        if errors == .dropped {
            posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        }
        if let pipe = errorsFromChild {
            // Text that exceeds the pipe is lost; otherwise the program would wait for a reader.
            _ = fcntl(pipe.write, F_SETFL, O_NONBLOCK)
            posix_spawn_file_actions_adddup2(&actions, pipe.write, 2)
        }
        var vector: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
        vector.append(nil)
        defer { for argument in vector { free(argument) } }
        var process = pid_t()
        let status = posix_spawnp(&process, name, &actions, nil, vector, environ)
        close(toChild.read)
        close(fromChild.write)
        if let pipe = errorsFromChild { close(pipe.write) }
        guard status == 0 else {
            close(toChild.write)
            close(fromChild.read)
            if let pipe = errorsFromChild { close(pipe.read) }
            throw UsageError("\(name) cannot be started: \(TextFile.errorText(status))")
        }
        self.process = process
        input = toChild.write
        output = fromChild.read
        self.errors = errorsFromChild?.read
    }

    /// Where the program's standard error goes.
    package enum ErrorOutput: Sendable {
        case inherited
        case dropped
        /// `receiveErrors` returns it.
        case kept
    }

    package func send(_ line: String) throws {
        var line = line + "\n"
        try line.withUTF8 { bytes in
            var offset = 0
            while offset < bytes.count {
                let rest = UnsafeRawBufferPointer(
                    rebasing: UnsafeRawBufferPointer(bytes)[offset...]
                )
                let count = Self.sendQuietly(input, rest)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { throw UsageError("The peer ended before its work was done") }
                offset += count
            }
        }
    }

    /// Returns the next line without its end, or `nil` if the program has closed its output.
    package func receiveLine() throws -> String? {
        while true {
            if let end = buffered.firstIndex(of: UInt8(ascii: "\n")) {
                defer { buffered.removeSubrange(...end) }
                return String(decoding: buffered[..<end], as: UTF8.self)
            }
            guard let more = try receiveBytes() else {
                defer { buffered = [] }
                return buffered.isEmpty ? nil : String(decoding: buffered, as: UTF8.self)
            }
            buffered += more
        }
    }

    /// Returns the bytes of the output that are available, or `nil` at its end.
    package func receiveBytes() throws -> [UInt8]? {
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = chunk.withUnsafeMutableBytes { bytes in
                read(output, bytes.baseAddress, bytes.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw TextFile.unreadable("The output of a program") }
            return count == 0 ? nil : Array(chunk[..<count])
        }
    }

    /// Returns the standard error, to the program's end; it is empty unless it is kept.
    package func receiveErrors() throws -> String {
        guard let errors else { return "" }
        return String(
            decoding: try TextFile.readAll(errors, "The errors of a program"),
            as: UTF8.self
        )
    }

    /// Closes the program's input and waits for its end.
    @discardableResult
    package func finish() -> Int32 {
        guard !isReaped else { return 0 }
        isReaped = true
        close(input)
        close(output)
        if let errors { close(errors) }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status
    }

    deinit { finish() }

    /// Returns the first line that a short program prints, or `nil` if the program fails.
    package static func firstLine(of arguments: [String]) -> String? {
        guard let process = try? Subprocess(arguments, errors: .dropped) else { return nil }
        let line = (try? process.receiveLine()) ?? nil
        return process.finish() == 0 ? line : nil
    }

    /// Sends the bytes that fit; if the program has ended, this is an error and not a signal.
    private static func sendQuietly(_ socket: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        Platform.send(socket, bytes.baseAddress, bytes.count, sendsNoSignal)
    }

    private static func makeSockets() throws -> (read: Int32, write: Int32) {
        var ends: [Int32] = [0, 0]
        guard socketpair(AF_UNIX, streamSocketType, 0, &ends) == 0 else {
            throw UsageError("No socket can be created: \(TextFile.errorText(errno))")
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        #if canImport(Darwin)
            var isSet: Int32 = 1
            setsockopt(
                ends[1],
                SOL_SOCKET,
                SO_NOSIGPIPE,
                &isSet,
                socklen_t(MemoryLayout<Int32>.size)
            )
        #endif
        return (ends[0], ends[1])
    }

    private static func makePipe() throws -> (read: Int32, write: Int32) {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else {
            throw UsageError("No pipe can be created: \(TextFile.errorText(errno))")
        }
        // The child gets its ends by dup2, which clears the close-on-exec flag.
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    #if canImport(Darwin)
        private static func emptyActions() -> posix_spawn_file_actions_t? { nil }
    #else
        private static func emptyActions() -> posix_spawn_file_actions_t { .init() }
    #endif
}

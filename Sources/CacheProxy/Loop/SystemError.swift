import Platform

/// A system call that failed, and why.
struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The operation that the proxy attempted; an open set, so a new one does not break a `switch`.
    struct Attempt: Hashable, Sendable, CustomStringConvertible {
        /// The attempt's stable name.
        let description: String
        let text: String

        private init(_ description: String, _ text: String) {
            self.description = description
            self.text = text
        }

        /// Accept connections at an address.
        static let listen = Attempt("listen", "Cannot listen on")
        /// Open the access log.
        static let openLog = Attempt("openLog", "Cannot open the access log")
        /// Watch sockets.
        static let watch = Attempt("watch", "Cannot watch sockets")
        /// Start a thread.
        static let startThread = Attempt("startThread", "Cannot start a thread")
        /// Open the pipe that signals arrive by.
        static let openPipe = Attempt("openPipe", "Cannot open a pipe for signals")
    }

    /// The operation that the proxy attempted.
    let attempt: Attempt
    /// The address or path; empty if there is none.
    let subject: String
    /// The value of `errno`.
    let code: Int32

    init(_ attempt: Attempt, _ subject: String = "", code: Int32 = errno) {
        self.attempt = attempt
        self.subject = subject
        self.code = code
    }

    /// One line for people: the attempt, the system's reason, and what to do where that is known.
    var description: String {
        let place = subject.isEmpty ? "" : " \(subject)"
        let remedy = remedy.map { "; \($0)" } ?? ""
        return "\(attempt.text)\(place): \(String(cString: strerror(code)))\(remedy)"
    }

    private var remedy: String? {
        switch (attempt, code) {
        case (.listen, EADDRINUSE): "stop the process that uses it, or give another address"
        case (.listen, EADDRNOTAVAIL): "give an address of this machine"
        case (.listen, EACCES):
            "give a port above 1023 or a directory that may be written, or grant the privilege"
        case (.listen, ENOENT), (.openLog, ENOENT): "create the directory"
        case (.openLog, EACCES): "give a file that this user may write"
        case (.openLog, ENXIO): "start the program that reads the pipe first"
        case (_, EMFILE), (_, ENFILE): "raise the limit of open files (ulimit -n)"
        case (.startThread, EAGAIN): "raise the limit of threads, or give fewer workers"
        default: nil
        }
    }
}

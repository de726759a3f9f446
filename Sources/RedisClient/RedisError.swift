import Platform

/// The reason why a command has no reply.
package struct RedisError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure; an open set, so that a new one does not break a `switch`.
    package struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code's stable name.
        package let description: String

        private init(_ description: String) { self.description = description }

        /// The URL of the servers cannot be used.
        package static let urlInvalid = Code("urlInvalid")
        /// The system gave no thread, no descriptor or no memory.
        package static let systemFailed = Code("systemFailed")
        /// There is no connection, and none could be made.
        package static let unreachable = Code("unreachable")
        /// The reply did not arrive within its limit.
        package static let timedOut = Code("timedOut")
        /// The connection ended before the reply; the server may have run the command.
        package static let cut = Code("cut")
        /// The server sent bytes that are no reply, or a reply beyond a limit.
        package static let misbehaved = Code("misbehaved")
        /// The breaker of the server is open: nothing was sent.
        package static let suspended = Code("suspended")
        /// Too many commands or bytes wait for this server: nothing was sent.
        package static let overloaded = Code("overloaded")
        /// The caller was cancelled.
        package static let cancelled = Code("cancelled")
        /// The client was shut down.
        package static let shutDown = Code("shutDown")
        /// The server refused the credentials or the command of this user.
        package static let notPermitted = Code("notPermitted")
        /// The server replied with another error, or a sentinel does not know the master's name.
        package static let refused = Code("refused")
        /// The cluster does not serve the slot, or does not serve at all.
        package static let clusterDown = Code("clusterDown")
        /// The keys of the command are being moved.
        package static let tryAgain = Code("tryAgain")
        /// The server reads its data from disk.
        package static let loading = Code("loading")
        /// The server is a replica, or writes are forbidden.
        package static let readOnly = Code("readOnly")
        /// The command was redirected too often.
        package static let redirected = Code("redirected")
        /// The sentinels are being asked for the master for the first time.
        package static let masterUnknown = Code("masterUnknown")
    }

    package let code: Code
    /// One line for people.
    package let detail: String

    package init(_ code: Code, detail: String) {
        self.code = code
        self.detail = detail
    }

    package var description: String { "\(code): \(detail)" }
}

extension RedisError {
    /// The system refuses another thread.
    static let noThread = RedisError(
        .systemFailed,
        detail: "Cannot start a thread for Redis; raise the limit of threads"
    )

    /// The longest part of a server's text that is shown.
    private static let shownScalarsMax = 200

    /// The meaning of a server's error reply.
    package init(reply text: String, from address: NodeAddress) {
        let word = text.prefix { $0 != " " }
        let code: Code =
            switch word {
            case "NOAUTH", "WRONGPASS", "NOPERM": .notPermitted
            case "CLUSTERDOWN": .clusterDown
            case "TRYAGAIN": .tryAgain
            case "LOADING", "MASTERDOWN": .loading
            case "READONLY": .readOnly
            default: .refused
            }
        let detail = "The server \(address) replied: \(Self.plain(text))"
        self.init(code, detail: detail)
    }

    /// A server's name has no address, or the look-up lacked something of this machine.
    init(_ failure: LookUpFailure, of address: NodeAddress) {
        if failure.lack != nil {
            let detail = "Cannot look up \(address.host): \(failure.reason)"
            self.init(.systemFailed, detail: detail)
        } else {
            let detail = "Cannot find the address of \(address.host): \(failure.reason)"
            self.init(.unreachable, detail: detail)
        }
    }

    /// A server's text without control characters, shortened.
    static func plain(_ text: String) -> String {
        var shown = String.UnicodeScalarView()
        for scalar in text.unicodeScalars.prefix(shownScalarsMax) {
            let isControl = scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
            shown.append(isControl ? "\u{FFFD}" : scalar)
        }
        return String(shown)
    }
}

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A system call that failed, and why.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What was attempted.
    public let attempt: String
    /// The value of `errno`.
    public let code: Int32

    package init(_ attempt: String, code: Int32 = errno) {
        self.attempt = attempt
        self.code = code
    }

    /// One line for people.
    public var description: String { "\(attempt): \(String(cString: strerror(code)))" }
}

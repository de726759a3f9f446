/// The reason why the system's resolver has no address for a name.
package struct LookUpFailure: Error, Hashable, Sendable {
    /// A code of the resolver, such as `EAI_NONAME`.
    private let code: Int32
    /// The error number of the system call that failed, or 0.
    private let systemCode: Int32

    package init(code: Int32, systemCode: Int32 = 0) {
        self.code = code
        self.systemCode = systemCode
    }

    /// The error number of what this machine lacks; `nil` if the look-up failed for another reason.
    package var lack: Int32? {
        if code == EAI_MEMORY { return ENOMEM }
        // The resolver says "try again" if it got no socket to ask a name server.
        guard code == EAI_SYSTEM || code == EAI_AGAIN else { return nil }
        return [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(systemCode) ? systemCode : nil
    }

    /// The system's text about the failure.
    package var reason: String {
        if let lack { return String(cString: strerror(lack)) }
        return code == EAI_SYSTEM && systemCode != 0
            ? String(cString: strerror(systemCode)) : String(cString: gai_strerror(code))
    }
}

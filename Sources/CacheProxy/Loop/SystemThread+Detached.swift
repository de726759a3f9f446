import Platform

extension SystemThread {
    /// Starts a thread that runs `run`; no caller waits for its end.
    static func startDetached(_ run: @escaping @Sendable () -> Void) throws(SystemError) {
        do throws(Failure) {
            try SystemThread(run).detach()
        } catch {
            throw SystemError(.startThread, code: error.code)
        }
    }
}

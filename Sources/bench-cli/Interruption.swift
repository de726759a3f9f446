import Benchmarks
import Platform

/// The end of the program at SIGINT and SIGTERM, which leaves no directory behind.
enum Interruption {
    /// The pipe from the handlers, which may call `write` and little else, to a thread.
    private static let ends: (read: Int32, write: Int32)? = {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { return nil }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }()

    /// Ends the program at the first of these signals; the status is 128 and the signal's number.
    static func watch() {
        guard let ends else { return }
        let isWatched = SystemThread.startWithoutSignals {
            var number: UInt8 = 0
            while true {
                let count = read(ends.read, &number, 1)
                if count == 1 { break }
                guard count < 0, errno == EINTR else { return }
            }
            ScratchDirectory.removeAll()
            _exit(128 + Int32(number))
        }
        guard isWatched else { return }
        for number in [SIGINT, SIGTERM] {
            signal(number) { number in
                var byte = UInt8(truncatingIfNeeded: number)
                if let ends = Interruption.ends { _ = write(ends.write, &byte, 1) }
            }
        }
    }
}

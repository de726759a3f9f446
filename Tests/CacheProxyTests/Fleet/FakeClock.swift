import Foundation

/// A wall clock for one process.
///
/// libfaketime stands between the program and the system's calendar time. Time that only counts
/// forward is left as it is, as when an administrator sets a clock.
struct FakeClock: Sendable {
    private static let library = ["x86_64", "aarch64"]
        .map { "/usr/lib/\($0)-linux-gnu/faketime/libfaketimeMT.so.1" }
        .first { FileManager.default.fileExists(atPath: $0) }

    static var isInstalled: Bool { library != nil }

    /// So many seconds ahead of the true time.
    let secondsAhead: Int

    /// The variables of a process that has this clock.
    ///
    /// The library would add `FAKETIME_SHARED`, and move the environment for that; Swift's runtime
    /// then does not find the arguments in front of it.
    var environment: [String: String] {
        [
            "FAKETIME_SHARED": "/none /none", "LD_PRELOAD": Self.library ?? "",
            "FAKETIME": String(format: "%+d", secondsAhead),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        ]
    }
}

import Foundation
import Synchronization

#if canImport(Glibc)
    import Platform
#endif

/// The descriptors and the memory that this process uses.
struct ProcessUse: CustomStringConvertible {
    let descriptors: Int
    let residentBytes: Int

    var description: String { "\(descriptors) descriptors, \(residentBytes >> 10) KiB" }

    /// Waits until at most `descriptorsMax` descriptors are open, and then returns the use.
    ///
    /// The wait is bounded. Ending threads close their descriptors a moment later.
    static func now(descriptorsMax: Int = 0) throws -> ProcessUse {
        var descriptors = try countDescriptors()
        for _ in 0..<2000 where descriptors > descriptorsMax {
            _ = poll(nil, 0, 1)
            descriptors = try countDescriptors()
        }
        giveBackSparePages()
        let pages = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
            .split(separator: " ")[1]
        return ProcessUse(
            descriptors: descriptors,
            residentBytes: (Int(pages) ?? 0) * Int(getpagesize())
        )
    }

    /// Returns freed memory to the system, so that only live memory is counted.
    ///
    /// The allocator keeps freed memory in one heap for each thread.
    private static func giveBackSparePages() {
        typealias Trim = @convention(c) (Int) -> Int32
        guard let symbol = dlsym(nil, "malloc_trim") else { return }
        _ = unsafeBitCast(symbol, to: Trim.self)(0)
    }

    static func raiseDescriptorLimit() {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    private static func countDescriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }
}

final class RequestCounter: Sendable {
    private let count = Atomic(0)
    func next() -> Int { count.add(1, ordering: .relaxed).newValue }
}

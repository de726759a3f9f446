import Platform
import Testing

@testable import Benchmarks

@Suite struct PageCacheTests {
    /// A file in memory is always there: its reads are no reads of a device.
    @Test(.enabled(if: access("/dev/shm", W_OK) == 0, "This system has no files in memory"))
    func filesInMemoryAreNotCold() throws {
        let scratch = try ScratchDirectory(in: "/dev/shm")
        try TextFile.write([UInt8](repeating: 1, count: 4 << 20), to: scratch.path + "/file")
        #expect(throws: WorkloadFailure.self) { try PageCache.drop(scratch, isChecked: true) }
        try PageCache.drop(scratch, isChecked: false)
    }
}

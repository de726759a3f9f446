import Platform
import Synchronization

/// The seeds of the simulations under way, which a process that traps leaves on standard error.
///
/// A trap ends the process before any line about its simulation, and the seed alone repeats it.
enum RunningSeeds {
    private final class Place: Sendable {
        let seed = Atomic(RunningSeeds.none)
    }

    /// No simulation has this seed.
    private static let none = UInt64.max
    /// One place for each thread that runs simulations.
    private static let places = (0..<Machine.processorCount).map { _ in Place() }

    /// The number of threads that have a place.
    static var count: Int { places.count }

    static func begin(_ seed: UInt64, at place: Int) {
        places[place].seed.store(seed, ordering: .relaxed)
    }

    static func end(at place: Int) { places[place].seed.store(none, ordering: .relaxed) }

    /// Lets the signals of traps write the seeds before they end the process.
    static func tellBeforeTraps() {
        // The places are made here, because a signal handler may not make them.
        precondition(count > 0)
        for number in [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE] {
            signal(number) { number in
                RunningSeeds.tell()
                // The instruction is run again, or `abort` goes on, and ends the process.
                signal(number, SIG_DFL)
            }
        }
    }

    private static func tell() {
        for place in places {
            let seed = place.seed.load(ordering: .relaxed)
            if seed != none { tell(seed) }
        }
    }

    /// Writes a line, without the heap: a signal handler may call `write` and little else.
    private static func tell(_ seed: UInt64) {
        let text: StaticString = "under way when the process trapped: seed "
        _ = write(2, text.utf8Start, text.utf8CodeUnitCount)
        // The largest seed has 20 digits.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 21) { line in
            var start = line.count - 1
            line[start] = UInt8(ascii: "\n")
            var rest = seed
            repeat {
                start -= 1
                line[start] = UInt8(ascii: "0") + UInt8(rest % 10)
                rest /= 10
            } while rest > 0
            let digits = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(line)[start...])
            _ = write(2, digits.baseAddress, digits.count)
        }
    }
}

import CacheTestSupport
import Foundation

/// A wall clock for one process.
///
/// A library of its own stands between the program and the system's calendar time. Time that only
/// counts forward is left as it is, as when an administrator sets a clock.
struct FakeClock: Sendable {
    static var isPossible: Bool {
        #if os(Linux)
            true
        #else
            false
        #endif
    }

    /// So many seconds ahead of the true time.
    let secondsAhead: Int

    /// Builds the library in `folder`; returns the variables of a process that has this clock.
    func environment(in folder: TemporaryFolder) throws -> [String: String] {
        let path = folder.path + "/clock"
        try Self.source.write(toFile: path + ".c", atomically: true, encoding: .utf8)
        let compiler = Process()
        compiler.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        compiler.arguments = ["clang", "-shared", "-fPIC", "-o", path + ".so", path + ".c"]
        try compiler.run()
        compiler.waitUntilExit()
        guard compiler.terminationStatus == 0 else { throw WireFailure("clang builds no library") }
        return ["LD_PRELOAD": path + ".so", "SECONDS_AHEAD": "\(secondsAhead)"]
    }

    private static let source = """
        #define _GNU_SOURCE
        #include <stdlib.h>
        #include <sys/syscall.h>
        #include <sys/time.h>
        #include <time.h>
        #include <unistd.h>

        static long ahead;

        __attribute__((constructor)) static void begin(void) {
            const char *seconds = getenv("SECONDS_AHEAD");
            ahead = seconds ? atol(seconds) : 0;
        }

        int clock_gettime(clockid_t clock, struct timespec *now) {
            int failure = (int)syscall(SYS_clock_gettime, clock, now);
            if (!failure && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
                now->tv_sec += ahead;
            return failure;
        }

        int gettimeofday(struct timeval *now, void *zone) {
            struct timespec precise;
            (void)zone;
            if (clock_gettime(CLOCK_REALTIME, &precise)) return -1;
            now->tv_sec = precise.tv_sec;
            now->tv_usec = precise.tv_nsec / 1000;
            return 0;
        }

        time_t time(time_t *now) {
            struct timespec precise;
            if (clock_gettime(CLOCK_REALTIME, &precise)) return -1;
            if (now) *now = precise.tv_sec;
            return precise.tv_sec;
        }
        """
}

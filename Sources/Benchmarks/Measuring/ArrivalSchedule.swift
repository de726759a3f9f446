import Platform

/// The arrival times of requests, decided before the first request is sent: an open loop.
///
/// A slow answer does not delay later arrivals, so the time they wait counts as latency, as it does
/// for users. To measure from the start of service would hide it ("coordinated omission"). Gaps are
/// exponential: the requests of independent users form a Poisson process.
package struct ArrivalSchedule: Sendable {
    /// Nanoseconds after the start, in ascending order.
    package let arrivals: [UInt64]

    package init(
        ratePerSecond: Double,
        durationSeconds: Double,
        from random: inout some RandomNumberGenerator
    ) {
        precondition(ratePerSecond > 0 && durationSeconds > 0)
        let gap = 1e9 / ratePerSecond
        let end = durationSeconds * 1e9
        var arrivals: [UInt64] = []
        arrivals.reserveCapacity(Int(ratePerSecond * durationSeconds * 1.01) + 16)
        var moment = 0.0
        while true {
            moment -= log(Double.random(in: Double.leastNonzeroMagnitude..<1, using: &random)) * gap
            guard moment < end else { break }
            arrivals.append(UInt64(moment))
        }
        self.arrivals = arrivals
    }

    /// Serves every arrival in order, one at a time, and records the time from arrival to answer.
    ///
    /// A test can replace `clock`. The wait for an arrival polls the clock.
    package func play(
        clock: @Sendable () -> UInt64 = monotonicNanoseconds,
        serve: (Int) async throws -> Void
    ) async rethrows -> Histogram {
        var histogram = Histogram()
        let start = clock()
        for (number, arrival) in arrivals.enumerated() {
            let due = start &+ arrival
            while clock() < due { await Task.yield() }
            try await serve(number)
            histogram.record(clock() &- due)
        }
        return histogram
    }
}

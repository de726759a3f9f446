import Platform
import Synchronization

/// Watches the waits for the device, so that each has a limit although the device hangs.
///
///     waiting ──the call returns──────────────────────────────────────────────────▶ over
///        └──the limit, the waiter's own limit, its cancellation──▶ left ──the call returns──▶ over
///
/// A wait that is left leaves its call behind: what a late read writes to belongs to that read. While
/// a call is past the limit the device counts as hanging. Then no wait begins, so that requests go on
/// without the disk, until these calls have returned.
///
/// A wait has no timer of its own: one task, the alarm, sleeps until the first limit. An earlier limit
/// starts another alarm, and the replaced one does nothing.
///
/// Invariant: a wait is in the table from its beginning until its call returns. The caller that takes
/// the waiter out of it wakes it, so each is woken once.
final class DiskWatch: Sendable {
    /// The number of a wait.
    typealias Number = UInt64

    /// One that waits, and how it is woken.
    enum Waiter: Sendable {
        case read(UnsafeContinuation<LoadResult, Never>)
        case block(UnsafeContinuation<BlockResult, Never>)
        case call(_ leave: @Sendable (CacheError) -> Void)
    }

    fileprivate struct Wait {
        /// `nil` once the wait was left.
        var waiter: Waiter?
        /// When the waiter leaves; not after `limitNanoseconds`.
        let untilNanoseconds: UInt64
        /// When the call is late.
        let limitNanoseconds: UInt64
        let isPatient: Bool
        var isLate = false

        /// When something happens next, unless the call returns before.
        var nextNanoseconds: UInt64 {
            if waiter != nil { return untilNanoseconds }
            return isLate ? .max : limitNanoseconds
        }
    }

    fileprivate struct State {
        var waits: [Number: Wait] = [:]
        var lateCount = 0
        var isOver = false
        /// When the present alarm goes off; `.max` without one.
        var alarmNanoseconds = UInt64.max
        var alarmNumber = 0
    }

    /// The alarm to set, outside the lock.
    fileprivate struct Alarm {
        let number: Int
        let atNanoseconds: UInt64
    }

    /// The error of a wait that has reached the limit, or did not begin.
    let late: CacheError
    private let waitNanoseconds: UInt64
    private let requestNanoseconds: UInt64
    private let clock: any CacheClock
    private let faults: DiskFaults
    private let startTask: DiskConfiguration.StartTask
    private let startWork: DiskConfiguration.StartTask
    private let numbers = Atomic<Number>(0)
    private let state = Mutex(State())

    init(_ configuration: DiskConfiguration, clock: any CacheClock, faults: DiskFaults) {
        waitNanoseconds = configuration.waitNanoseconds
        requestNanoseconds = min(configuration.requestNanoseconds, waitNanoseconds)
        startTask = configuration.startTask
        startWork = configuration.startWork
        self.clock = clock
        self.faults = faults
        late = CacheError(
            .storageTimedOut,
            detail: "The disk in \(configuration.directory) has not answered for "
                + "\(Double(configuration.waitNanoseconds) / 1e9) seconds; "
                + "requests go on without it until it does"
        )
    }

    /// Whether a call is past the limit, and has not returned.
    var isHanging: Bool { state.withLock { $0.lateCount > 0 } }

    // MARK: Waiting

    /// The number of a wait that may begin.
    func makeNumber() -> Number { numbers.wrappingAdd(1, ordering: .relaxed).newValue }

    /// When a wait ends that begins now, and that has `seconds` of its own, if given.
    func end(ofWaitWithinSeconds seconds: Double?) -> UInt64 {
        let now = clock.monotonicNanoseconds
        let own = seconds.map { UInt64(nanosecondsIn: $0) } ?? .max
        return Self.sum(now, min(own, requestNanoseconds))
    }

    private static func sum(_ now: UInt64, _ nanoseconds: UInt64) -> UInt64 {
        let (sum, overflow) = now.addingReportingOverflow(nanoseconds)
        return overflow ? .max : sum
    }

    /// Begins a wait until `untilNanoseconds`, or the time that a request gives to the device; returns
    /// `false`, and keeps nothing, if the device hangs, the cache has ended, or the task of a reader is
    /// cancelled.
    ///
    /// A wait that `isPatient` is for a body whose reader has nothing else: it lasts up to the limit,
    /// and begins though the device hangs, or though the cache has ended, but not if both are so.
    func begin(
        _ number: Number,
        _ waiter: Waiter,
        untilNanoseconds: UInt64 = .max,
        isPatient: Bool = false
    ) -> Bool {
        let now = clock.monotonicNanoseconds
        let limit = Self.sum(now, waitNanoseconds)
        let longest = isPatient ? limit : Self.sum(now, requestNanoseconds)
        let wait = Wait(
            waiter: waiter,
            untilNanoseconds: min(untilNanoseconds, longest),
            limitNanoseconds: limit,
            isPatient: isPatient
        )
        var alarm: Alarm?
        let begins = state.withLock { state in
            guard state.mayBegin(isPatient: isPatient),
                !waiter.endsWithItsTask || !Task.isCancelled
            else { return false }
            state.waits[number] = wait
            alarm = state.alarm(at: wait.nextNanoseconds)
            return true
        }
        if let alarm { set(alarm) }
        return begins
    }

    /// Ends a wait whose call has returned; returns the waiter, unless it has left.
    func end(_ number: Number) -> Waiter? {
        state.withLock { state in
            guard let wait = state.waits.removeValue(forKey: number) else { return nil }
            if wait.isLate { state.lateCount -= 1 }
            assert(state.lateCount >= 0, "a late call returns once")
            return wait.waiter
        }
    }

    /// Ends the wait of a reader of a record.
    func end(_ number: Number, with result: LoadResult) {
        if case .read(let reader)? = end(number) { reader.resume(returning: result) }
    }

    /// Ends the wait of a reader of a body.
    func end(_ number: Number, with result: BlockResult) {
        if case .block(let reader)? = end(number) { reader.resume(returning: result) }
    }

    /// Leaves a wait whose task was cancelled.
    func leave(_ number: Number) {
        if Mutant.waitsDespiteCancellation.isOn { return }
        let waiter = state.withLock { $0.takeWaiter(of: number) }
        if let waiter { wake(waiter) }
    }

    /// Leaves the waits of look-ups, because the cache ends, and those for lanes if it does not wait
    /// for that work.
    ///
    /// A body that still has a reader stays readable, unless the device hangs.
    ///
    /// - Returns: Whether it is known to hang.
    func end(leavingLanes: Bool) -> Bool {
        let now = clock.monotonicNanoseconds
        let (waiters, hangs) = state.withLock { state -> ([Waiter], Bool) in
            // No alarm goes off any more.
            let late = state.leavers(nowNanoseconds: now)
            state.isOver = true
            let hangs = state.lateCount > 0
            let leavers = state.leavers { waiter, isPatient in
                switch waiter {
                case .read: true
                case .call: isPatient ? hangs : leavingLanes
                case .block: hangs
                }
            }
            return (late + leavers, hangs)
        }
        for waiter in waiters { wake(waiter) }
        return hangs
    }

    /// Wakes a waiter that leaves before its call returns.
    private func wake(_ waiter: Waiter) {
        switch waiter {
        case .read(let reader): reader.resume(returning: .abandoned)
        case .block(let reader): reader.resume(returning: .failure(late))
        case .call(let leave): leave(late)
        }
    }

    /// Waits for `work`, which is done in a task of its own and on a lane, as long as `begin` allows.
    ///
    /// - Throws: The error of `work`; `late` after that time. The work then goes on alone.
    func call<Value: Sendable>(
        isPatient: Bool = false,
        untilNanoseconds: UInt64 = .max,
        _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        if waitNanoseconds == .max || Mutant.waitsForTheLane.isOn { return try await work() }
        return try await withUnsafeThrowingContinuation {
            (continuation: UnsafeContinuation<Value, any Error>) in
            let number = makeNumber()
            let begins = begin(
                number,
                .call { continuation.resume(throwing: $0) },
                untilNanoseconds: untilNanoseconds,
                isPatient: isPatient
            )
            guard begins else { return continuation.resume(throwing: refusal) }
            startWork { [self] in
                let result: Result<Value, any Error>
                do { result = .success(try await work()) } catch { result = .failure(error) }
                if end(number) != nil { continuation.resume(with: result) }
            }
        }
    }

    /// The error of a wait that did not begin.
    private var refusal: CacheError { state.withLock { $0.isOver } ? DiskShard.closed : late }

    // MARK: The alarm

    private func set(_ alarm: Alarm) {
        let now = clock.monotonicNanoseconds
        let rest = alarm.atNanoseconds > now ? alarm.atNanoseconds - now : 0
        startTask { [weak self, clock] in
            guard (try? await clock.sleep(nanoseconds: max(rest, Self.leastSleep))) != nil else {
                return
            }
            self?.goOff(alarm.number)
        }
    }

    /// Limits that are closer to each other share one alarm.
    private static let leastSleep: UInt64 = 1_000_000

    private func goOff(_ number: Int) {
        let now = clock.monotonicNanoseconds
        var waiters: [Waiter] = []
        var (alarm, isNews) = (Alarm?.none, false)
        state.withLock { state in
            guard state.alarmNumber == number else { return }
            state.alarmNanoseconds = .max
            let lateBefore = state.lateCount
            waiters = state.leavers(nowNanoseconds: now)
            isNews = lateBefore == 0 && state.lateCount > 0
            let next = state.waits.values.reduce(UInt64.max) { min($0, $1.nextNanoseconds) }
            alarm = state.alarm(at: next)
        }
        // Before the waiters go on: what they do is a result of this failure.
        if isNews { faults.note(late) }
        for waiter in waiters { wake(waiter) }
        if let alarm { set(alarm) }
    }
}

extension DiskWatch.Waiter {
    /// Whether the wait ends when its task is cancelled.
    fileprivate var endsWithItsTask: Bool {
        if case .call = self { return false }
        return true
    }
}

extension DiskWatch.State {
    /// The alarm for a moment before that of the present one.
    fileprivate mutating func alarm(at nanoseconds: UInt64) -> DiskWatch.Alarm? {
        guard nanoseconds < alarmNanoseconds, !isOver else { return nil }
        alarmNanoseconds = nanoseconds
        alarmNumber += 1
        return DiskWatch.Alarm(number: alarmNumber, atNanoseconds: nanoseconds)
    }

    /// Takes the waiters whose time is over, and counts the calls that are late.
    fileprivate mutating func leavers(nowNanoseconds now: UInt64) -> [DiskWatch.Waiter] {
        var leavers: [DiskWatch.Waiter] = []
        for (number, wait) in waits.sorted(by: { $0.key < $1.key }) {
            if wait.untilNanoseconds <= now, let waiter = takeWaiter(of: number) {
                leavers.append(waiter)
            }
            if wait.limitNanoseconds <= now, !wait.isLate {
                waits[number]?.isLate = true
                lateCount += 1
            }
        }
        return leavers
    }

    /// Takes the waiters that `isMeant` accepts.
    fileprivate mutating func leavers(
        _ isMeant: (DiskWatch.Waiter, _ isPatient: Bool) -> Bool
    ) -> [DiskWatch.Waiter] {
        waits.keys.sorted().compactMap { number in
            guard let wait = waits[number], let waiter = wait.waiter,
                isMeant(waiter, wait.isPatient)
            else { return nil }
            return takeWaiter(of: number)
        }
    }

    fileprivate func mayBegin(isPatient: Bool) -> Bool {
        let isHanging = lateCount > 0 && !Mutant.waitsWhateverHangs.isOn
        return isPatient ? !(isOver && isHanging) : !isOver && !isHanging
    }

    fileprivate mutating func takeWaiter(of number: DiskWatch.Number) -> DiskWatch.Waiter? {
        defer { waits[number]?.waiter = nil }
        return waits[number]?.waiter
    }
}

/// The result of reading a block of a body.
typealias BlockResult = Result<ByteChunk, CacheError>

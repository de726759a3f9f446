/// The calls of a store that have not returned, and those of them that are past their limit.
///
/// A pure value: the queue performs the action at a limit.
struct OpenCalls {
    typealias ID = UInt64

    private struct Call {
        let deadlineNanoseconds: UInt64
        let isLookUp: Bool
        /// The key that is stored or removed.
        let hash: KeyHash?
        let expire: @Sendable () -> Void
    }

    /// A call past its limit, and the action that follows outside the lock.
    struct Late {
        let hash: KeyHash?
        let expire: @Sendable () -> Void
    }

    private let limits: StoreLimits
    private var open: [ID: Call] = [:]
    private var abandoned: [ID: Bool] = [:]
    private var lookUpCount = 0
    private var nextID: ID = 0

    init(limits: StoreLimits) { self.limits = limits }

    /// Whether so many calls are past their limit that no further calls are made.
    var isOut: Bool { abandoned.count >= limits.maximumAbandoned }

    /// Begins a call; returns `nil` if no further call may begin.
    mutating func begin(
        untilNanoseconds deadline: UInt64,
        isLookUp: Bool,
        of hash: KeyHash? = nil,
        expire: @escaping @Sendable () -> Void
    ) -> ID? {
        guard !isOut else { return nil }
        if isLookUp {
            guard lookUpCount < limits.maximumLookUps else { return nil }
            lookUpCount += 1
        }
        nextID += 1
        open[nextID] = Call(
            deadlineNanoseconds: deadline,
            isLookUp: isLookUp,
            hash: hash,
            expire: expire
        )
        return nextID
    }

    /// Notes that the call has returned.
    mutating func end(_ id: ID) {
        let isLookUp = open.removeValue(forKey: id)?.isLookUp ?? abandoned.removeValue(forKey: id)
        assert(isLookUp != nil, "a call that began ends once")
        if isLookUp == true { lookUpCount -= 1 }
        assert(lookUpCount >= 0, "only a look-up that began ends")
        assert(lookUpCount <= open.count + abandoned.count, "each look-up is a call")
    }

    /// Takes the calls that are past their limit.
    mutating func expire(nowNanoseconds: UInt64) -> [Late] {
        let late = open.filter { $0.value.deadlineNanoseconds <= nowNanoseconds }
        for (id, call) in late {
            assert(abandoned[id] == nil, "a call is late once")
            open[id] = nil
            abandoned[id] = call.isLookUp
        }
        return late.sorted { $0.key < $1.key }.map {
            Late(hash: $0.value.hash, expire: $0.value.expire)
        }
    }

    var firstDeadlineNanoseconds: UInt64? { open.values.map(\.deadlineNanoseconds).min() }
}

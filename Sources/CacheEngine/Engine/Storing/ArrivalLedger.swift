import HTTPCaching
import Synchronization

/// Remembers the responses on their way into the store, so that an older one does not take the place
/// of a newer one.
///
/// The order is that of the heads. While a body arrives, perhaps for minutes, another response of its
/// key may be stored, confirm the stored one, or end it. Each of these outdates the arrivals of the
/// key whose heads came before its own; the store refuses an outdated one, and no request joins it.
///
/// A part outdates no arrival of its own version, as a whole or another part of it holds more.
///
/// A response without `Vary` takes the place of its resource's index, and so outdates the variants
/// too.
final class ArrivalLedger: Sendable {
    private let lastOrder = Atomic<UInt64>(0)
    private let shares: [ArrivalShare]

    private static let shareCount = 16

    init() { shares = (0..<Self.shareCount).map { _ in ArrivalShare() } }

    /// The place of the newest head; 0 if none has arrived.
    var newestHead: UInt64 { lastOrder.load(ordering: .acquiring) }

    /// The place of a head that arrives now.
    func nextOrder() -> UInt64 {
        lastOrder.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
    }

    /// Expects a response to a request for `resource`, whose own key is found out by a look-up: it
    /// may be that of a variant.
    ///
    /// `begin` must follow, so that a change of that key during the look-up counts.
    func expect(_ resource: KeyHash, order: UInt64, fields: FieldSection) -> ExpectedArrival {
        share(of: resource).expect(ArrivalMark(key: resource, order: order, fields: fields))
    }

    /// Begins the arrival of an expected response with these fields, whose key is known now.
    func begin(
        _ key: KeyHash,
        _ expected: ExpectedArrival,
        fields: FieldSection
    ) -> Arrival {
        let mark = ArrivalMark(key: key, order: expected.mark.order, fields: fields)
        return share(of: key).begin(mark, expected.mark)
    }

    /// Whether a response with a later head has been stored under the key since `expected` began.
    func isOvertaken(_ expected: ExpectedArrival, under key: KeyHash) -> Bool {
        share(of: key).isOvertaken(expected.mark, key)
    }

    /// Begins the arrival of a response with these fields, whose head has the place `order`.
    func begin(_ key: KeyHash, order: UInt64, fields: FieldSection) -> Arrival {
        share(of: key).begin(ArrivalMark(key: key, order: order, fields: fields))
    }

    /// Begins a copy of the response that is stored under the key; every later change outdates it.
    func beginCopy(of key: KeyHash) -> Arrival {
        share(of: key).begin(ArrivalMark(key: key, order: 0, fields: nil))
    }

    /// Outdates the copies of the key, and the arrivals with heads before `order`, except `arrival`
    /// and those that `isSameVersion` says have the version of a part that is stored.
    ///
    /// `withVariants` if the key is that of a resource, and its response does not vary: the arrivals
    /// of its variants are outdated too.
    ///
    /// Called after the change, inside the key's critical section: an arrival is stored either before
    /// the change or not at all, and a copy that begins later sees the change.
    func outdate(
        _ key: KeyHash,
        order: UInt64 = 0,
        withVariants: Bool = false,
        except arrival: Arrival? = nil,
        isSameVersion: (FieldSection) -> Bool = { _ in false }
    ) {
        share(of: key).outdate(
            key,
            order: order,
            withVariants: withVariants && !Mutant.storesOlderVariants.isOn,
            except: arrival?.mark,
            isSameVersion: isSameVersion
        )
    }

    private func share(of key: KeyHash) -> ArrivalShare { shares[Int(key.placement >> 60)] }
}

/// One response whose key is not known yet, until this is released.
final class ExpectedArrival: Sendable {
    fileprivate let mark: ArrivalMark
    private let share: ArrivalShare

    fileprivate init(_ mark: ArrivalMark, _ share: ArrivalShare) {
        self.mark = mark
        self.share = share
    }

    deinit { share.endExpecting(mark) }

    /// Whether a newer response has overtaken it, whatever its key will be.
    var isOutdated: Bool { mark.isOutdated }
}

/// One response, or one copy of a stored one, on its way into the store until this is released.
final class Arrival: Sendable {
    let mark: ArrivalMark
    private let share: ArrivalShare

    fileprivate init(_ mark: ArrivalMark, _ share: ArrivalShare) {
        self.mark = mark
        self.share = share
    }

    deinit { share.end(mark) }

    var isOutdated: Bool { mark.isOutdated }
}

/// Whether a newer response has overtaken an arrival.
final class ArrivalMark: Sendable {
    /// The key of the response; that of its resource while its own is not known.
    fileprivate let key: KeyHash
    fileprivate let order: UInt64
    /// The fields of the response; `nil` for a copy of a stored one.
    fileprivate let fields: FieldSection?
    private let outdated = Atomic(false)

    fileprivate init(key: KeyHash, order: UInt64, fields: FieldSection?) {
        self.key = key
        self.order = order
        self.fields = fields
    }

    var isOutdated: Bool { outdated.load(ordering: .acquiring) }

    fileprivate func outdate() { outdated.store(true, ordering: .releasing) }

    /// Whether a change whose head has the place `order` outdates it, as every change does a copy.
    fileprivate func isOlder(
        than order: UInt64,
        _ isSameVersion: (FieldSection) -> Bool
    ) -> Bool {
        guard let fields else { return true }
        return self.order < order && !isSameVersion(fields)
    }
}

/// The arrivals of a sixteenth of the keys.
private final class ArrivalShare: Sendable {
    /// By the placement that a resource shares with its variants.
    private struct Marks {
        var known: [UInt64: [ArrivalMark]] = [:]
        /// Those without a key.
        var expected: [UInt64: [ExpectedMark]] = [:]

        func isOvertaken(_ mark: ArrivalMark, _ key: KeyHash) -> Bool {
            let changes = expected[key.placement]?.first { $0.mark === mark }?.changes
            return mark.isOutdated || changes?.contains(key) == true
        }
    }

    /// A response without a key, and the keys under which newer ones have been stored meanwhile.
    private struct ExpectedMark {
        /// Beyond this number the response counts as outdated under every key.
        static let changesMax = 64

        let mark: ArrivalMark
        var changes: Set<KeyHash> = []

        mutating func note(_ key: KeyHash) {
            if changes.count < Self.changesMax || changes.contains(key) {
                changes.insert(key)
            } else {
                mark.outdate()
            }
        }
    }

    private let marks = Mutex(Marks())

    deinit {
        assert(
            marks.withLock { $0.known.isEmpty && $0.expected.isEmpty },
            "every arrival has ended"
        )
    }

    func expect(_ mark: ArrivalMark) -> ExpectedArrival {
        marks.withLock {
            $0.expected[mark.key.placement, default: []].append(ExpectedMark(mark: mark))
        }
        return ExpectedArrival(mark, self)
    }

    func endExpecting(_ mark: ArrivalMark) {
        let placement = mark.key.placement
        marks.withLock { marks in
            marks.expected[placement]?.removeAll { $0.mark === mark }
            if marks.expected[placement]?.isEmpty == true { marks.expected[placement] = nil }
        }
    }

    /// Begins an arrival that was expected as `expected`, if that is given.
    func begin(_ mark: ArrivalMark, _ expected: ArrivalMark? = nil) -> Arrival {
        marks.withLock { marks in
            marks.known[mark.key.placement, default: []].append(mark)
            guard let expected, marks.isOvertaken(expected, mark.key),
                !Mutant.marksArrivalsLate.isOn
            else { return }
            mark.outdate()
        }
        return Arrival(mark, self)
    }

    func isOvertaken(_ mark: ArrivalMark, _ key: KeyHash) -> Bool {
        marks.withLock { $0.isOvertaken(mark, key) }
    }

    func end(_ mark: ArrivalMark) {
        let placement = mark.key.placement
        marks.withLock { marks in
            assert(
                marks.known[placement]?.contains { $0 === mark } == true,
                "only what began ends"
            )
            marks.known[placement]?.removeAll { $0 === mark }
            if marks.known[placement]?.isEmpty == true { marks.known[placement] = nil }
        }
    }

    func outdate(
        _ key: KeyHash,
        order: UInt64,
        withVariants: Bool,
        except own: ArrivalMark?,
        isSameVersion: (FieldSection) -> Bool
    ) {
        let placement = key.placement
        marks.withLock { marks in
            // Checked first: usually no body arrives, and the key need not be hashed.
            if !marks.known.isEmpty, let known = marks.known[placement] {
                for mark in known where mark !== own && (withVariants || mark.key == key) {
                    if mark.isOlder(than: order, isSameVersion) { mark.outdate() }
                }
            }
            guard !marks.expected.isEmpty, let expected = marks.expected[placement] else { return }
            for (index, one) in expected.enumerated()
            where one.mark.isOlder(than: order, isSameVersion) {
                if withVariants {
                    one.mark.outdate()
                } else {
                    marks.expected[placement]?[index].note(key)
                }
            }
        }
    }
}

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
final class ArrivalLedger: Sendable {
    private let lastOrder = Atomic<UInt64>(0)
    private let shares: [ArrivalShare]

    private static let shareCount = 16

    init() { shares = (0..<Self.shareCount).map { _ in ArrivalShare() } }

    /// The place of a head that arrives now.
    func nextOrder() -> UInt64 {
        lastOrder.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
    }

    /// Begins the arrival of a response with these fields, whose head has the place `order`.
    func begin(_ key: KeyHash, order: UInt64, fields: FieldSection) -> Arrival {
        share(of: key).begin(key, ArrivalMark(order: order, fields: fields))
    }

    /// Begins a copy of the response that is stored under the key; every later change outdates it.
    func beginCopy(of key: KeyHash) -> Arrival {
        share(of: key).begin(key, ArrivalMark(order: 0, fields: nil))
    }

    /// Outdates the copies of the key, and the arrivals with heads before `order`, except `arrival`
    /// and those that `isSameVersion` says have the version of a part that is stored.
    ///
    /// Called after the change, inside the key's critical section: an arrival is stored either before
    /// the change or not at all, and a copy that begins later sees the change.
    func outdate(
        _ key: KeyHash,
        order: UInt64 = 0,
        except arrival: Arrival? = nil,
        isSameVersion: (FieldSection) -> Bool = { _ in false }
    ) {
        share(of: key).outdate(
            key,
            order: order,
            except: arrival?.mark,
            isSameVersion: isSameVersion
        )
    }

    private func share(of key: KeyHash) -> ArrivalShare { shares[Int(key.placement >> 60)] }
}

/// One response, or one copy of a stored one, on its way into the store until this is released.
final class Arrival: Sendable {
    let key: KeyHash
    let mark: ArrivalMark
    private let share: ArrivalShare

    fileprivate init(_ key: KeyHash, _ mark: ArrivalMark, _ share: ArrivalShare) {
        self.key = key
        self.mark = mark
        self.share = share
    }

    deinit { share.end(key, mark) }

    var isOutdated: Bool { mark.isOutdated }
}

/// Whether a newer response has overtaken an arrival.
final class ArrivalMark: Sendable {
    fileprivate let order: UInt64
    /// The fields of the response; `nil` for a copy of a stored one.
    fileprivate let fields: FieldSection?
    private let outdated = Atomic(false)

    fileprivate init(order: UInt64, fields: FieldSection?) {
        self.order = order
        self.fields = fields
    }

    var isOutdated: Bool { outdated.load(ordering: .acquiring) }

    fileprivate func outdate() { outdated.store(true, ordering: .releasing) }
}

/// The arrivals of a sixteenth of the keys.
private final class ArrivalShare: Sendable {
    private let marks = Mutex<[KeyHash: [ArrivalMark]]>([:])

    func begin(_ key: KeyHash, _ mark: ArrivalMark) -> Arrival {
        marks.withLock { $0[key, default: []].append(mark) }
        return Arrival(key, mark, self)
    }

    func end(_ key: KeyHash, _ mark: ArrivalMark) {
        marks.withLock { marks in
            marks[key]?.removeAll { $0 === mark }
            if marks[key]?.isEmpty == true { marks[key] = nil }
        }
    }

    func outdate(
        _ key: KeyHash,
        order: UInt64,
        except own: ArrivalMark?,
        isSameVersion: (FieldSection) -> Bool
    ) {
        marks.withLock { marks in
            // Checked first: usually no body arrives, and the key need not be hashed.
            guard !marks.isEmpty, let known = marks[key] else { return }
            for mark in known where mark !== own {
                if let fields = mark.fields {
                    guard mark.order < order, !isSameVersion(fields) else { continue }
                }
                mark.outdate()
            }
        }
    }
}

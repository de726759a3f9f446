import CacheEngine
import RedisClient
import Synchronization

extension SharedStore {
    /// The life of a lease that is not renewed.
    static let leaseMilliseconds = 3_000
    /// The number of times that a lease is renewed, once a second.
    private static let renewalsMax = 60
    /// The time for which a response that is for one client is not waited for again.
    private static let unshareableMilliseconds = 5_000

    func hold(_ key: SharedKey, _ name: StoreName, _ token: [UInt8]) -> SharedLease {
        let clock = surroundings.clock
        let renewal = surroundings.start { [weak self] in
            for _ in 0..<Self.renewalsMax {
                guard (try? await clock.sleep(nanoseconds: 1_000_000_000)) != nil, let self else {
                    return
                }
                let words = [
                    token, Array(LeaseStep.keep.rawValue.utf8),
                    StoreStep.word(Self.leaseMilliseconds),
                ]
                await self.run(StoreStep(.lease, name, words))
            }
        }
        let before = state.withLock { state in
            state.leases.updateValue(Holding(token: token, renewal: renewal), forKey: key)
        }
        before?.renewal.cancel()
        return SharedLease(key: key, token: token)
    }

    /// Takes the lease of a key, if this machine holds it.
    func take(_ key: SharedKey, _ token: [UInt8]? = nil) -> [UInt8]? {
        let lease = state.withLock { $0.take(key, token) }
        lease?.renewal.cancel()
        return lease?.token
    }

    func end(_ lease: SharedLease, _ ending: SharedLease.Ending) {
        guard let token = take(lease.key, lease.token), let name = name(of: lease.key) else {
            return
        }
        release(name, token, ending == .failed ? .free : .skip)
    }

    /// The words of the script `lease`.
    enum LeaseStep: String {
        case keep, free, skip
    }

    func release(_ name: StoreName, _ token: [UInt8], _ step: LeaseStep) {
        let words = [
            token, Array(step.rawValue.utf8), StoreStep.word(Self.unshareableMilliseconds),
        ]
        surroundings.start { [self] in await run(StoreStep(.lease, name, words)) }
    }

    /// Runs a step of a lease on the lane that asks for leases.
    ///
    /// A look may end without a reply while its request is still on the way. On another connection,
    /// a release could overtake the request, and the lease would block its key with no holder. Here
    /// it comes after the request, or goes over a new connection. Then the old one was reset: a
    /// request that the server has not received never arrives, and one that it has received runs
    /// before it answers the greeting of the new connection.
    private func run(_ step: StoreStep) async {
        let lane = Mutant.releasesOnAnotherLane.isOn ? RedisLane.bulk : .data
        _ = try? await client.run([step], by: step.name.record, lane: lane)
    }
}

extension SharedStore.State {
    /// Takes the lease of a key, if this machine holds it; the caller cancels the renewal.
    mutating func take(_ key: SharedKey, _ token: [UInt8]? = nil) -> SharedStore.Holding? {
        guard let lease = leases[key], token == nil || token == lease.token else { return nil }
        leases[key] = nil
        return lease
    }
}

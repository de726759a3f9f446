package import CacheEngine
import CurlOrigin
import HTTPCaching
import Synchronization

/// An origin that can connect without sending a request.
package protocol ConnectingOrigin: Origin {
    /// Connects to the server of `url` and closes the connection; throws if it cannot.
    func connect(to url: String) async throws
}

extension CurlOrigin: ConnectingOrigin {}

/// Several origins with the same content, used as one: asked in turn, and left out for a while
/// after failures.
///
/// One client request reaches at most one origin. Another origin is tried only if no connection
/// could be made, because then nothing was sent. A task probes the origins that are left out; no
/// client waits for it.
final class OriginPool: LoopOrigin {
    private struct State: Sendable {
        var ring: OriginRing
        var upstream: any Origin
        var host: ProxyConfiguration.OriginHost
        /// The upstream, if an event loop can ask each of the origins through it.
        var loopUpstream: (any LoopOrigin)?
        /// Ends with the last probe that is due.
        var prober: TaskHandle?
        var isOpen = true
        var localFaults = ReportLimit()

        init(
            _ addresses: [OriginAddress],
            _ upstream: any Origin,
            _ host: ProxyConfiguration.OriginHost
        ) {
            ring = OriginRing(addresses)
            self.upstream = upstream
            self.host = host
            chooseUpstream()
        }

        mutating func replace(
            _ addresses: [OriginAddress],
            _ upstream: (any Origin)?,
            _ host: ProxyConfiguration.OriginHost?
        ) {
            ring.replace(addresses)
            if let upstream { self.upstream = upstream }
            if let host { self.host = host }
            chooseUpstream()
        }

        private mutating func chooseUpstream() {
            let arePlain = ring.members.allSatisfy { $0.address.isPlain }
            loopUpstream = arePlain ? upstream as? any LoopOrigin : nil
        }
    }

    /// The lines that name the proxy in requests to origins: `Via` and `CDN-Loop`.
    private let ownLines: FieldSection
    /// The same for a request that came in HTTP/1.0, whose `Via` it has already.
    private let oldVersionLines: FieldSection
    private let loops: LoopGuard
    private let report: @Sendable (String) -> Void
    private let state: Mutex<State>

    /// `name` is the proxy's name in `Via` and `CDN-Loop`, and `host` the one that requests get in
    /// `Host`; `report` gets a line when an origin goes down, and when it answers again.
    init(
        _ addresses: [OriginAddress],
        name: String,
        upstream: any Origin,
        host: ProxyConfiguration.OriginHost = .client,
        report: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        ownLines = FieldSection([("Via", "1.1 \(name)"), ("CDN-Loop", name)])
        oldVersionLines = FieldSection([("CDN-Loop", name)])
        loops = LoopGuard(name: name)
        self.report = report
        state = Mutex(State(addresses, upstream, host))
    }

    nonisolated(nonsending) func fetch(_ request: OriginRequest) async throws
        -> OriginResponse
    {
        var tried: Set<OriginAddress> = []
        var lastError: (any Error)?
        while let (choice, upstream, host) = choose(excluding: tried) {
            do {
                var outgoing = request
                prepare(&outgoing, for: choice.address, host)
                let response = try await upstream.fetch(outgoing)
                noteAnswer(of: choice.address)
                return response
            } catch {
                note(error, of: choice)
                guard Self.isUnreached(error) || Mutant.sendsTwice.isOn else { throw error }
                tried.insert(choice.address)
                lastError = error
            }
        }
        throw lastError ?? CacheError(.originFailed, detail: "No origin is configured")
    }

    var isOnLoop: Bool { state.withLock { $0.loopUpstream }?.isOnLoop ?? false }

    func begin(
        _ request: consuming OriginRequest,
        _ completion: consuming @escaping @Sendable (consuming LoopAnswer) -> Void
    ) -> (any LoopExchange)? {
        guard let (choice, upstream, host) = chooseOnLoop() else { return nil }
        prepare(&request, for: choice.address, host)
        let exchange = upstream.begin(request) { [self, completion] answer in
            switch answer {
            case .response: noteAnswer(of: choice.address)
            case .failure(let error):
                note(error, of: choice)
                // Nothing was sent: `fetch` tries the other origins.
                if Self.isUnreached(error), hasSeveral { return completion(.unsent) }
            case .unsent: state.withLock { $0.ring.gaveUp(choice) }
            }
            completion(answer)
        }
        if exchange == nil { state.withLock { $0.ring.gaveUp(choice) } }
        return exchange
    }

    private var hasSeveral: Bool { state.withLock { $0.ring.members.count > 1 } }

    /// Makes the request the one that is sent to the origin at `address`.
    @inline(never)
    private func prepare(
        _ request: inout OriginRequest,
        for address: OriginAddress,
        _ host: ProxyConfiguration.OriginHost
    ) {
        var fields = request.fields.section
        let lines = loops.hasOldVersionVia(fields) ? oldVersionLines : ownLines
        lines.withUnsafeBytes { fields.append(trusted: $0) }
        if host == .origin { fields.set("Host", address.hostField) }
        request.fields = HeaderFields(fields)
        request.url = address.url(for: request.url)
        // The way to the origins has its own limits; this one is the engine's, over all attempts.
        request.timeout = nil
    }

    /// Replaces the origins, and the way to them and the host in requests if they are given.
    ///
    /// Requests that were sent end on the old way.
    func replace(
        _ addresses: [OriginAddress],
        upstream: (any Origin)? = nil,
        host: ProxyConfiguration.OriginHost? = nil
    ) {
        state.withLock { $0.replace(addresses, upstream, host) }
    }

    /// Ends the probes.
    func shutDown() {
        let prober = state.withLock { state in
            state.isOpen = false
            return state.prober.take()
        }
        prober?.cancel()
    }

    /// Every origin and its state.
    ///
    /// Copied under the lock: the ring would change a shared array in place as soon as the reader
    /// releases it, which ThreadSanitizer reports as a race (decision 0024).
    var members: [OriginRing.Member] {
        state.withLock { state in
            var copy: [OriginRing.Member] = []
            copy.reserveCapacity(state.ring.members.count)
            for member in state.ring.members { copy.append(member) }
            return copy
        }
    }

    @inline(never)
    private func choose(
        excluding tried: Set<OriginAddress>
    ) -> (OriginRing.Choice, any Origin, ProxyConfiguration.OriginHost)? {
        state.withLock { state in
            state.ring.choose(excluding: tried, now: coarseMilliseconds())
                .map { ($0, state.upstream, state.host) }
        }
    }

    private func chooseOnLoop() -> (
        OriginRing.Choice, any LoopOrigin, ProxyConfiguration.OriginHost
    )? {
        state.withLock { state in
            guard let upstream = state.loopUpstream else { return nil }
            return state.ring.choose(now: coarseMilliseconds()).map { ($0, upstream, state.host) }
        }
    }

    @inline(never)
    private func noteAnswer(of address: OriginAddress) {
        let wasDown = state.withLock { $0.ring.answered(address) }
        if wasDown { report("Origin \(address): it answers again") }
    }

    private func note(_ error: any Error, of choice: OriginRing.Choice) {
        let address = choice.address
        let now = coarseMilliseconds()
        if let fault = error as? LocalLack { reportLocalFault(fault, now: now) }
        let (goesDown, prober) = state.withLock { state -> (Bool, TaskHandle?) in
            let goesDown: Bool
            switch Self.code(of: error) {
            case .originUnreachable: goesDown = state.ring.unreached(address, now: now)
            case .originFailed, .originTimedOut, .originMisbehaved:
                goesDown = state.ring.failed(address, now: now)
            default:
                state.ring.gaveUp(choice)
                goesDown = false
            }
            guard state.isOpen, state.prober == nil, state.ring.nextProbe != nil else {
                return (goesDown, nil)
            }
            let prober = TaskHandle()
            state.prober = prober
            return (goesDown, prober)
        }
        if goesDown { report("Origin \(address): \((error as? CacheError)?.detail ?? "\(error)")") }
        prober?.attach(
            Task { [weak self] in
                while let delay = self?.probeDelay() {
                    try? await Task.sleep(for: .milliseconds(delay))
                    if Task.isCancelled { return }
                    await self?.probe()
                }
            }
        )
    }

    /// Whether the error is the origin's: a lack of this machine, and a wait for a free connection,
    /// are not.
    static func tellsOfOrigin(_ error: any Error) -> Bool {
        switch code(of: error) {
        case .originUnreachable, .originFailed, .originTimedOut, .originMisbehaved: true
        default: false
        }
    }

    /// The code of an error that the origin caused; `nil` for a fault of this machine.
    private static func code(of error: any Error) -> CacheError.Code? {
        if let error = error as? CacheError { return error.code }
        return Mutant.countsLocalFaults.isOn ? .originFailed : nil
    }

    private func reportLocalFault(_ fault: LocalLack, now: Int64) {
        guard let skipped = state.withLock({ $0.localFaults.admit(now: now) }) else { return }
        report("\(fault)" + ReportLimit.note(skipped: skipped))
    }

    /// Whether the error says that no connection was made.
    static func isUnreached(_ error: any Error) -> Bool {
        (error as? CacheError)?.code == .originUnreachable
    }

    // MARK: Probes

    /// Milliseconds until the next probe; `nil` ends the task that probes.
    private func probeDelay() -> Int64? {
        state.withLock { state in
            guard state.isOpen, let next = state.ring.nextProbe else {
                state.prober = nil
                return nil
            }
            // Another origin may go down in the meantime, and its probe is due after the shortest
            // pause.
            return min(max(0, next - coarseMilliseconds()), OriginRing.backOffMillisecondsMin)
        }
    }

    private func probe() async {
        let (due, upstream) = state.withLock { state in
            (state.ring.takeProbes(now: coarseMilliseconds()), state.upstream)
        }
        await withTaskGroup { group in
            for address in due {
                group.addTask { await self.probe(address, over: upstream) }
            }
        }
    }

    private func probe(_ address: OriginAddress, over upstream: any Origin) async {
        do {
            // If the origin cannot connect without a request, the next request is the probe.
            try await (upstream as? any ConnectingOrigin)?.connect(to: "\(address)/")
            state.withLock { $0.ring.probeConnected(address) }
        } catch {
            let now = coarseMilliseconds()
            let isFailure = Self.tellsOfOrigin(error)
            state.withLock { state in
                if isFailure {
                    state.ring.probeFailed(address, now: now)
                } else {
                    state.ring.probeGaveUp(address, now: now)
                }
            }
        }
    }
}

package import CacheEngine
import Synchronization

/// Several origins that hold the same, as one: asked in turn, those that fail left out for a while.
///
/// One client request reaches at most one origin. Another one is tried only where no connection
/// could be made, for then nothing was sent.
package final class OriginPool: Origin {
    private let upstream: any Origin
    private let name: String
    private let ring: Mutex<OriginRing>

    /// `name` is what this proxy calls itself in `Via` and `CDN-Loop`.
    package init(_ addresses: [OriginAddress], name: String, upstream: any Origin) {
        self.upstream = upstream
        self.name = name
        ring = Mutex(OriginRing(addresses))
    }

    package func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        var outgoing = request
        outgoing.fields.append("Via", "1.1 \(name)")
        outgoing.fields.append("CDN-Loop", name)
        var tried: Set<OriginAddress> = []
        var lastError: (any Error)?
        while let address = ring.withLock({
            $0.choose(now: coarseMilliseconds(), excluding: tried)
        }) {
            tried.insert(address)
            outgoing.url = address.url(for: request.url)
            do {
                let response = try await upstream.fetch(outgoing)
                ring.withLock { $0.answered(address) }
                return response
            } catch {
                note(error, of: address)
                guard Self.isUnreached(error) else { throw error }
                lastError = error
            }
        }
        throw lastError ?? CacheError(.originFailed, detail: "There is no origin")
    }

    /// Other origins from here on.
    package func replace(_ addresses: [OriginAddress]) {
        ring.withLock { $0.replace(addresses) }
    }

    package var members: [OriginRing.Member] { ring.withLock { $0.members } }

    private func note(_ error: any Error, of address: OriginAddress) {
        let isOriginsFault =
            switch (error as? CacheError)?.code {
            case .originFailed, .originTimedOut, .originMisbehaved: true
            default: false
            }
        ring.withLock { ring in
            if isOriginsFault {
                ring.failed(address, now: coarseMilliseconds())
            } else {
                ring.gaveUp(address)
            }
        }
    }

    /// Whether no connection was made.
    ///
    /// The texts are libcurl's, of CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST and what it
    /// says of its time limit for both; where they should change the worst is that nobody else is
    /// asked.
    static func isUnreached(_ error: any Error) -> Bool {
        guard let error = error as? CacheError else { return false }
        let beginnings =
            switch error.code {
            case .originFailed:
                ["Failed to connect", "Couldn't connect", "Could not connect", "Could not resolve"]
            case .originTimedOut: ["Connection timed out", "Resolving timed out"]
            default: [String]()
            }
        return beginnings.contains { error.detail.hasPrefix($0) }
    }
}

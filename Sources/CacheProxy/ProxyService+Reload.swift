import CurlOrigin
import Synchronization

/// Changing the configuration while the proxy runs.
extension ProxyService {
    /// Applies the options that can change while the proxy runs.
    ///
    /// These are the origins and the limits of connections to them, the purge token, and the limits,
    /// times and rules for clients.
    ///
    /// - Returns: Names of options that differ and need a restart.
    /// - Throws: `ConfigurationError`, or `CacheError` for a configuration that the next start would
    ///   refuse; nothing has changed then.
    func reload(_ new: ProxyConfiguration) throws -> [String] {
        if !Mutant.takesWhatCannotStart.isOn { try Self.validate(new) }
        desk.setToken(try new.purgeTokenFile.map(ConfigurationReader.token))
        var applied = new
        if !Mutant.takesHalfOfAReload.isOn {
            for option in Self.fixedOptions { option.keep(&applied, configuration) }
        }
        let before = current.withLock { current in
            // They belong to the listener: clients of another kind would all be refused.
            if new.listen != configuration.listen, !Mutant.takesPeersOfTheNextListener.isOn {
                applied.proxyPeers = current.proxyPeers
            }
            defer { current = applied }
            return current
        }
        let curl = Self.curlConfiguration(applied)
        var upstream: PlainOrigin?
        if curl != Self.curlConfiguration(before) {
            budget.setLimits(curl.connections)
            let isAnother = Mutant.forgetsConnectionsInUse.isOn
            upstream = Self.upstream(curl, isAnother ? ConnectionBudget(curl.connections) : budget)
        }
        pool.replace(new.origins, upstream: upstream, host: new.originHost)
        ignored.replace(applied.ignoredParameters)
        applied.name = configuration.name
        server.configure(Self.serverConfiguration(applied))
        if let admin, let address = applied.admin {
            admin.configure(Self.adminConfiguration(applied, at: address))
        }
        var left = Self.fixedOptions.filter { $0.differs(configuration, new) }.map(\.name)
        if applied.proxyPeers != new.proxyPeers { left.append("proxy-protocol-from") }
        return left
    }

    /// An option that a running proxy cannot change.
    struct FixedOption: Sendable {
        let name: String
        let differs: @Sendable (ProxyConfiguration, ProxyConfiguration) -> Bool
        /// Gives the first configuration the second one's value.
        let keep: @Sendable (inout ProxyConfiguration, ProxyConfiguration) -> Void

        init(
            _ name: String,
            differs: @escaping @Sendable (ProxyConfiguration, ProxyConfiguration) -> Bool
        ) {
            self.name = name
            self.differs = differs
            keep = { _, _ in }
        }

        init<Value: Equatable & SendableMetatype>(
            _ name: String,
            _ place: any WritableKeyPath<ProxyConfiguration, Value> & Sendable
        ) {
            self.name = name
            differs = { $0[keyPath: place] != $1[keyPath: place] }
            keep = { $0[keyPath: place] = $1[keyPath: place] }
        }
    }

    static let fixedOptions: [FixedOption] = [
        .init("listen", \.listen), .init("admin", \.admin), .init("memory", \.memory),
        .init("disk", \.diskDirectory), .init("disk-size", \.diskSize),
        .init("disk-sync", \.diskSync),
        .init("workers", \.workers), .init("mode", \.mode), .init("access-log", \.accessLog),
        .init("name") {
            // Each reading generates another name if none is given.
            $0.name != $1.name && !($0.isNameGenerated && $1.isNameGenerated)
        },
        .init("first-byte-timeout", \.firstByteTime),
        .init("between-bytes-timeout", \.betweenBytesTime),
        .init("drain-timeout", \.drainTime),
        .init("fleet", \.fleet), .init("fleet-purge-lag", \.fleetLag),
        .init("fleet-cut-off", \.fleetCutOff), .init("fleet-share", \.fleetShares),
        // Each connection gets the new time at once; the engine's limit over the attempts at all
        // origins was set from the old one.
        .init("connect-timeout") { $1.connectTimeOfAll > $0.connectTimeOfAll },
        .init("set-cookie", \.cookies), .init("grace", \.grace),
        .init("stale-on-failure", \.staleOnFailure), .init("lifetime", \.lifetimes),
        .init("condition-miss", \.conditionMiss),
        .init("ignore-client-no-cache", \.ignoresClientCacheControl),
    ]
}

extension ProxyConfiguration {
    /// The time that connecting to every origin in turn may take.
    var connectTimeOfAll: Duration { connectTime * max(1, origins.count) }
}

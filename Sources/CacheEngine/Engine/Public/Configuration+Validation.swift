import Platform

extension HTTPCache.Configuration {
    /// Checks the name, the shares and the limits.
    ///
    /// - Throws: `CacheError.Code.configurationInvalid`.
    func validate() throws {
        try Self.require(!name.isEmpty, "name is empty; give the cache a name")
        let share = memory.maximumEntryShare
        try Self.require(
            share > 0 && share <= 1,
            "memory.maximumEntryShare is \(share); give a number above 0 and at most 1"
        )
        let diskShare = backing.maximumEntryShare
        try Self.require(
            diskShare > 0 && diskShare <= 1,
            "backing.maximumEntryShare is \(diskShare); give a number above 0 and at most 1"
        )
        let pinned = memory.maximumPinnedShare
        try Self.require(
            (0...1).contains(pinned),
            "memory.maximumPinnedShare is \(pinned); give a number from 0 to 1"
        )
        try Self.requireFromZero(maximumShutDownTime.seconds, "maximumShutDownTime")
        try Self.requirePositive(hooks.maximumWillStoreTime.seconds, "hooks.maximumWillStoreTime")
        try caching.validate()
        try collapsing.validate()
        try originLimits.validate()
        try backing.storeLimits.validate()
        try backing.requireHeeded()
    }

    /// Checks the configuration, and whether its cache may share entries if it does.
    ///
    /// - Throws: `CacheError.Code.configurationInvalid`.
    func validate(sharesEntries: Bool) throws {
        try validate()
        try Self.require(
            !sharesEntries || mode == .shared,
            "A cache of one client has no part in a shared store; set the mode `.shared`, or let "
                + "the fleet share purges alone"
        )
    }

    /// Checks what the opening of a cache in this fleet would refuse, and opens nothing.
    ///
    /// - Throws: `CacheError.Code.configurationInvalid`.
    package func validate(in fleet: Fleet?) throws {
        try validate(sharesEntries: fleet?.sharesEntries == true)
    }

    fileprivate static func require(_ isValid: Bool, _ detail: @autoclosure () -> String) throws {
        guard isValid else { throw CacheError(.configurationInvalid, detail: detail()) }
    }

    fileprivate static func requirePositive(
        _ value: some Comparable & ExpressibleByIntegerLiteral,
        _ name: String
    ) throws {
        try require(value > 0, "\(name) is \(value); give a number above 0")
    }

    fileprivate static func requireFromZero(
        _ value: some Comparable & ExpressibleByIntegerLiteral,
        _ name: String
    ) throws {
        try require(value >= 0, "\(name) is \(value); give a number from 0 on")
    }

    fileprivate static func requireOrder(
        _ minimum: (Duration, name: String),
        _ maximum: (Duration, name: String)
    ) throws {
        try require(
            minimum.0 <= maximum.0,
            "\(maximum.name) is \(maximum.0.seconds), and \(minimum.name) is "
                + "\(minimum.0.seconds); give a maximum from the minimum on"
        )
    }

    /// The time between two checks of the flights: a quarter of the shortest limit, and at most 5
    /// seconds.
    var watchNanoseconds: UInt64 {
        let shortest = min(
            collapsing.maximumWait.seconds,
            originLimits.maximumHeadTime.seconds,
            originLimits.maximumIdleTime.seconds
        )
        return UInt64(nanosecondsIn: max(0.01, min(5, shortest / 4)))
    }
}

extension BackingStore {
    /// - Throws: `CacheError.Code.configurationInvalid` for a setting that this kind of store ignores.
    fileprivate func requireHeeded() throws {
        let plain = BackingStore.none
        let (isDisk, isCustom) =
            switch kind {
            case .none: (false, false)
            case .directory: (true, false)
            case .custom: (false, true)
            }
        for (name, isPlain) in [
            ("durability", durability == plain.durability),
            ("foreignDirectory", foreignDirectory == plain.foreignDirectory),
            ("maximumEntryShare", maximumEntryShare == plain.maximumEntryShare),
        ] {
            try HTTPCache.Configuration.require(
                isPlain || isDisk,
                "backing.\(name): without a disk it changes nothing; give a disk, or leave it out"
            )
        }
        var limits = storeLimits
        // A disk heeds this one, too.
        if isDisk { limits.maximumOperationTime = plain.storeLimits.maximumOperationTime }
        try HTTPCache.Configuration.require(
            limits == plain.storeLimits || isCustom,
            "backing.storeLimits: without a custom store they change nothing; "
                + "give a custom store, or leave them out"
        )
    }
}

extension CachingRules {
    /// - Throws: `CacheError.Code.configurationInvalid`.
    fileprivate func validate() throws {
        typealias Check = HTTPCache.Configuration
        if let heuristic {
            try Check.require(
                (0...1).contains(heuristic.share),
                "caching.heuristic.share is \(heuristic.share); give a number from 0 to 1"
            )
            let lifetime = heuristic.maximumLifetime.seconds
            try Check.requireFromZero(lifetime, "caching.heuristic.maximumLifetime")
        }
        if let refreshAheadShare {
            try Check.require(
                refreshAheadShare > 0 && refreshAheadShare <= 1,
                "caching.refreshAheadShare is \(refreshAheadShare); "
                    + "give a number above 0 and at most 1"
            )
        }
        for (time, name) in [
            (minimumLifetime, "minimumLifetime"), (staleWhileRevalidate, "staleWhileRevalidate"),
            (staleIfError, "staleIfError"), (staleOnDisconnect, "staleOnDisconnect"),
        ] { try Check.requireFromZero(time.seconds, "caching.\(name)") }
        for (status, lifetime) in statusLifetimes {
            let name = "caching.statusLifetimes[\(status)]"
            try Check.requireFromZero(lifetime.seconds, name)
        }
        try Check.requireOrder(
            (minimumLifetime, "caching.minimumLifetime"),
            (maximumLifetime, "caching.maximumLifetime")
        )
        try Check.requirePositive(maximumVariants, "caching.maximumVariants")
        try Check.requireFromZero(maximumTags, "caching.maximumTags")
    }
}

extension CollapsingOptions {
    /// - Throws: `CacheError.Code.configurationInvalid`.
    fileprivate func validate() throws {
        typealias Check = HTTPCache.Configuration
        for (count, name) in [
            (maximumFlights, "maximumFlights"), (maximumWaiters, "maximumWaiters"),
            (maximumAttempts, "maximumAttempts"), (maximumLookUps, "maximumLookUps"),
            (maximumOriginRequestsPerKey ?? 1, "maximumOriginRequestsPerKey"),
        ] { try Check.requirePositive(count, "collapsing.\(name)") }
        try Check.requireFromZero(maximumEscapes, "collapsing.maximumEscapes")
        for (time, name) in [
            (sharedErrorTime, "sharedErrorTime"), (maximumWait, "maximumWait"),
            (hitForMissTime, "hitForMissTime"), (refreshBackOff, "refreshBackOff"),
        ] { try Check.requireFromZero(time.seconds, "collapsing.\(name)") }
        if let maximumAge {
            try Check.requirePositive(maximumAge.seconds, "collapsing.maximumAge")
        }
    }
}

extension OriginLimits {
    /// - Throws: `CacheError.Code.configurationInvalid`.
    fileprivate func validate() throws {
        typealias Check = HTTPCache.Configuration
        try Check.requirePositive(maximumHeadTime.seconds, "originLimits.maximumHeadTime")
        try Check.requirePositive(maximumIdleTime.seconds, "originLimits.maximumIdleTime")
        try Check.requirePositive(maximumFields, "originLimits.maximumFields")
        try Check.requirePositive(maximumHeadSize.bytes, "originLimits.maximumHeadSize")
        try Check.requirePositive(windowSize.bytes, "originLimits.windowSize")
    }
}

extension StoreLimits {
    /// - Throws: `CacheError.Code.configurationInvalid`.
    fileprivate func validate() throws {
        typealias Check = HTTPCache.Configuration
        try Check.requirePositive(maximumOperationTime.seconds, "storeLimits.maximumOperationTime")
        try Check.requirePositive(minimumRetryDelay.seconds, "storeLimits.minimumRetryDelay")
        try Check.requirePositive(maximumOperations, "storeLimits.maximumOperations")
        try Check.requirePositive(maximumLookUps, "storeLimits.maximumLookUps")
        try Check.requirePositive(maximumAbandoned, "storeLimits.maximumAbandoned")
        try Check.requirePositive(maximumQueuedSize.bytes, "storeLimits.maximumQueuedSize")
        try Check.requirePositive(maximumQueuedKeys, "storeLimits.maximumQueuedKeys")
        try Check.requireFromZero(maximumBarredKeys, "storeLimits.maximumBarredKeys")
        try Check.requireFromZero(maximumBarredScopes, "storeLimits.maximumBarredScopes")
        try Check.requireOrder(
            (minimumRetryDelay, "storeLimits.minimumRetryDelay"),
            (maximumRetryDelay, "storeLimits.maximumRetryDelay")
        )
    }
}

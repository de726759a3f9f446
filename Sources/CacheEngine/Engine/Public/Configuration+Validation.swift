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
        if let share = caching.heuristic?.share {
            try Self.require(
                (0...1).contains(share),
                "caching.heuristic.share is \(share); give a number from 0 to 1"
            )
        }
        if let share = caching.refreshAheadShare {
            try Self.require(
                share > 0 && share <= 1,
                "caching.refreshAheadShare is \(share); give a number above 0 and at most 1"
            )
        }
        try backing.storeLimits.validate()
        try Self.requirePositive(originLimits.windowSize.bytes, "originLimits.windowSize")
        try Self.requirePositive(collapsing.maximumWaiters, "collapsing.maximumWaiters")
        try Self.requirePositive(collapsing.maximumAttempts, "collapsing.maximumAttempts")
        try Self.requirePositive(collapsing.maximumLookUps, "collapsing.maximumLookUps")
        try backing.requireHeeded()
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
        try HTTPCache.Configuration.require(
            storeLimits == plain.storeLimits || isCustom,
            "backing.storeLimits: without a custom store they change nothing; "
                + "give a custom store, or leave them out"
        )
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
        for (count, name) in [
            (maximumBarredKeys, "maximumBarredKeys"), (maximumBarredScopes, "maximumBarredScopes"),
        ] {
            try Check.require(
                count >= 0,
                "storeLimits.\(name) is \(count); give a number from 0 on"
            )
        }
    }
}

#if ENGINE_CHECKS
    import Platform
#endif

/// Deliberate bugs in the proxy, each of which a test must catch.
///
/// `make mutants` runs that test in a process with that one bug. Only a build with
/// `-DENGINE_CHECKS` can have one: in all others `isOn` is a constant, and the optimiser removes
/// it.
enum Mutant: String {
    case takesLengthBesideCoding
    case takesTwoLengths
    case takesTwoHosts
    case takesLooseChunkEnds
    case sendsHostAsWritten
    case forwardsProxyCredentials
    case forwardsOddNames
    case sendsTheOriginsCoding
    case purgesForAnyToken
    case sendsTwice
    case probesManyAtOnce
    case countsNoHops
    case ignoresMaxForwards
    case keepsConnectionAfterEarlyAnswer
    case countsQueuedAsSent
    case trustsIdleConnections
    case repeatsAnyMethod
    case sendsStreamsOnKept
    case keepsOriginLengthBesideCoding
    case takesResetForEnd
    case forgetsPermits
    case staysInLine
    case discardsAddresses
    case closesNoIdle
    case countsLocalFaults
    case blamesNamesForLacks
    case waitsForTheLog
    case sharesTheTerminal
    case keepsEveryLogLine
    case forgetsReports
    case believesAnyPeer
    case ignoresAnnouncedAddress
    case endsByACopy
    case takesHalfOfAReload
    case keepsOldLimits
    case takesPeersOfTheNextListener
    case takesWhatCannotStart
    case forgetsConnectionsInUse
    case queuesWholeEntries
    case readsPastItsTurn
    case answersPastItsTurn
    case answersWhoDoesNotRead
    case countsNoDroppedFraming
    case countsNoPieces
    case keepsAnswersOfGoneClients
    case endsBesideOtherClients
    case limitsUploadsAsResponses
    case sharesAuthenticatedConnections
    case keepsToOldAddresses
    case triesDeadAddressesFirst
    case closesClientsThatBegin
    case staysAboveALowerLimit
    case cutsSteadyReaders
    case blamesOriginsThatReadSlowly
    case keepsClientsThatDrip
    case blamesOriginsForTheEnd
    case endsAnyTrial

    var isOn: Bool {
        #if ENGINE_CHECKS
            rawValue == mutantInForce
        #else
            false
        #endif
    }
}

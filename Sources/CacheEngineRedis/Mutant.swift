#if ENGINE_CHECKS
    import Platform
#endif

/// Deliberate bugs in the log of purges and the shared store, each of which a test must catch.
///
/// `make mutants` runs that test in a process with this one bug. Only a build with
/// `-DENGINE_CHECKS` can contain any bug: in other builds `isOn` is a constant, and the optimiser
/// removes the branch.
enum Mutant: String {
    case trustsThePositionAlone
    case skipsGaps
    case restoresNothing
    case restoresInTheReader
    case beginsInTheReader
    case believesAnyEnd
    case joinsPagesWithAGap
    case forgetsWhatIsLostAgain
    case appendsWhatOthersHave
    case keepsBeforeApplying
    case keepsBeforeConfirming
    case confirmsInTheReader
    case waitsForTheStorageInSilence
    case forgetsOwnPurges
    case trustsLaterEpochs
    case forgetsEpochs
    case forgetsEpochsOfReceipts
    case servesWithinTheGap
    case waitsForNoMachine
    case withdrawsAtOnce
    case usesPurgedRecords
    case refusesFailedScopesForEver
    case readsBackWhatItRemoved
    case givesUpPurgesThatAreMoved
    case givesUpPurgesThatAreRedirected
    case trustsPurgesOfTwoServers
    case queuesAnyNumberOfPurges
    case refusesLongPurgesForEver
    case releasesOnAnotherLane
    case waitsForEveryLeader

    var isOn: Bool {
        #if ENGINE_CHECKS
            rawValue == mutantInForce
        #else
            false
        #endif
    }
}

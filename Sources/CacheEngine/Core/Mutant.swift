#if ENGINE_CHECKS
    import Platform
#endif

/// Deliberate bugs in the engine; a test must catch each of them.
///
/// `make mutants` runs each test in a process with one bug. Bugs exist only in a build with
/// `-DENGINE_CHECKS`. In every other build `isOn` is a constant, and the optimiser removes the
/// branch.
enum Mutant: String {
    // Memory
    case promotesUnasked
    case promotesEverything
    case freshensWhateverIsThere
    case removesByHashAlone
    case walksForEachTag
    case removesOneBatchOnly
    case walksOnInALargerTable
    case sketchNeverFades
    case staysInItsQueue
    case pinsOnlyWhenStored
    case keepsUnusedPins
    case readsTheRestAsWhole
    case trustsARefusedBarrier

    // Disk
    case skipsBodyChecksum
    case skipsHeadChecksum
    case skipsTailChecksum
    case skipsBlockChecksum
    case ignoresOffsetInSeal
    case matchesQueuedKeysByHash
    case matchesKeysByHash
    case writesNoTombstones
    case admitsMemoryOnlyToDisk
    case keepsCopyOfRefused
    case queuesOversizeInEveryShard
    case forgetsUsesInMemory
    case writesKeptBodies
    case forgetsPurgesEarly
    case trustsReclaimedCopies
    case escalatesNothing
    case reinsertsUnasked
    case leavesOldRecordOnFailure
    case skipsSynchronization
    case confirmsBySealingAnother
    case retiresNothing
    case overdrawsTheDisk
    case takesEveryFile
    case roundsBeforeAdding
    case endsCutBodiesWhole
    case doomsNothing
    case unlinksInAnyDirectory
    case ignoresTheLock
    case writesBehindItsEnd
    case takesRefusalsForAbsence
    case missesReplacedBodies
    case decompressesAnySize
    case writesEachConfirmation
    case overlooksRefusals
    case writesEveryPurge
    case trustsAnyBoot
    case reservesTheAnnounced
    case awaitsNoRecord
    case fillsTheLineAtEachUse
    case keepsTheLastPurge
    case believesTheLastLife
    case believesOldHeaders
    case believesOldNames
    case retiresBeforeItKeeps
    case reclaimsTheLiving
    case abandonsEmptySegments
    case givesAwayTheLastSegment
    case keepsWhatFits
    case dropsNoBodies
    case dropsUsedBodies
    case losesIndexes
    case forgetsSparedBodies

    // Recovery
    case ignoresTombstones
    case ignoresPurgeRecords
    case replaysNewestFirst
    case keepsSessionEntries
    case forgetsTheTail
    case adoptsBodiesUnseen
    case leavesUnownedBodies
    case continuesUnseen
    case overlooksForbiddenFiles

    // Flights
    case electsNobody
    case refusesNobody
    case endsWantedFlights
    case sharesUnshareable
    case permitsLateLeaders
    case joinsOutdatedFlights
    case sharesRemovedTags
    case retiresForAnyTag
    case refreshesBesideABody
    case refreshesForReloads
    case joinsUnsuitableAnswers
    case answersLateWaiters
    case marksNoLargeResponses
    case escapesFreely
    case refreshesWithoutPause
    case joinsPersonalRefreshes
    case marksForOneClient
    case marksForCookies
    case sharesDespiteCookies
    case marksForProvokedRefusals
    case sendsACrowdToAFailingOrigin
    case keepsSmallPieces
    case opensTheGate
    case endsBrokenBodiesCleanly
    case waitsForNoReader
    case waitsForTheFastestOnly
    case waitsForStillReaders
    case writesForDoneReaders
    case waitsForSilentOrigins
    case joinsFarParts
    case runsAheadOfSlowReaders
    case holdsUpTheStoreForEver
    case gathersWithoutLimit
    case leavesLonersWaiting
    case keepsLeadsOfGoneClients
    case keepsLeadsThatAreOver
    case leavesExchangesRunning
    case cutsLongTimeouts
    case timesUploads
    case keepsPlacesOfUnsent
    case fetchesAWholeForEachRange
    case asksAsTheFirstClient

    // Tiers
    case promotesWhatWasReplaced
    case storesWhatWasRemoved
    case storesOlderAnswers
    case marksArrivalsLate
    case removesFromMemoryAlone
    case keepsPurgedEntriesInMemory
    case confirmsOneByOne
    case storesNothingMeanwhile
    case hidesRecordsLate
    case givesUpForOneClient
    case replacesWhatIsNewerOnDisk
    case letsWritersGoOn
    case forgetsLateReaders
    case ledgerIgnoresTags
    case variantsWithoutNumber
    case readsAnyIndex
    case sharesOlderVariants
    case staleMarksEndEarly
    case believesEveryClock
    case servesWhatIsDoubted
    case standsInDespiteMarks
    case overlooksMarksOnDisk
    case keepsTheReplaced
    case keepsTheOutdated
    case endsByErrors
    case endsWhatIsStale
    case letsLateRefusalsRemove
    case keepsNamedFields
    case storesOverlongBodies
    case copiesLargeBodiesInPlace
    case addsToAnyLength
    case replacesWholeByPart
    case joinsPartsOfOtherVersions
    case givesBytesForAStandIn
    case forgetsTagsOfParts
    case copiesForTinyParts
    case takesAnyPort
    case downloadsErrorPages
    case keepsTheReplacedValue
    case storesAnyAnswer
    case keepsAFalseLength
    case leavesAStoreToAll
    case losesMarksOfURLs
    case marksOneVariant
    case entersIntoOldIndexes
    case writesIndexesAtOnce
    case leavesIndexesInMemory
    case pinsNoIndexes
    case servesTheFirstSet
    case endsOneSetOnly
    case removesIndexesByClass
    case filesIndexesUnderClasses

    var isOn: Bool {
        #if ENGINE_CHECKS
            rawValue == mutantInForce
        #else
            false
        #endif
    }
}

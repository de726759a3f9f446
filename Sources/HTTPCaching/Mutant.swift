#if ENGINE_CHECKS
    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Darwin)
        import Darwin
    #endif

    /// The deliberate bug of this process, from `ENGINE_MUTANT`; `nil` if there is none.
    let mutantInForce = getenv("ENGINE_MUTANT").map { String(cString: $0) }
#endif

/// Deliberate bugs in the rules of HTTP; a test must catch each of them.
///
/// `make mutants` runs each test in a process with one bug. Bugs exist only in a build with
/// `-DENGINE_CHECKS`. In every other build `isOn` is a constant, and the optimiser removes the
/// branch.
enum Mutant: String {
    case staysFreshTooLong
    case servesNoCache
    case staleOnErrorForEver
    case varyIgnoresAbsence
    case takesLongListsForNone
    case dropsEmptyMembers
    case takesEveryFieldForAList
    case ignoresAgeField
    case ignoresMustRevalidate
    case ignoresSharedMaxAge
    case guessesForCookies
    case sharesSpentLifetimes
    case takesSettingsForStatements
    case keepsPassingErrors
    case storesNoStore
    case skipsBehindErrors
    case sharesPrivateResponses
    case sharesAuthorizedResponses
    case takesWeakTagsForStrong
    case ignoresConnectionLists
    case obeysEveryConnectionList
    case freshensContentLength
    case freshensErrorsByHead
    case believesAny304
    case ignoresIfRange
    case invalidatesOtherOrigins
    case combinesByDateAlone
    case keepsDigestsOfParts
    case takesStaleForImmutable
    case forgetsOverlaps
    case validatesByPost
    case takesTheLastLength

    var isOn: Bool {
        #if ENGINE_CHECKS
            rawValue == mutantInForce
        #else
            false
        #endif
    }
}

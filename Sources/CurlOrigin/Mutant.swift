#if ENGINE_CHECKS
    import Platform
#endif

/// Deliberate bugs in the origin, each of which a test must catch.
///
/// `make mutants` runs that test in a process with this one bug. Only a build with
/// `-DENGINE_CHECKS` can contain any bug: in other builds `isOn` is a constant, and the optimiser
/// removes the branch.
enum Mutant: String {
    case keepsLengthBesideCoding
    case countsNoInterimHeads
    case readsPastTheWindow
    case endsBeforeWhatWaits
    case blamesSlowReadersOnTheOrigin
    case followsRedirects
    case sendsProxyAuthorization
    case takesFailedContentForWhole
    case keepsForStreams
    case countsTransfersOfOneConnection
    case reusesAuthenticatedConnections
    case blamesServersThatReadSlowly

    var isOn: Bool {
        #if ENGINE_CHECKS
            rawValue == mutantInForce
        #else
            false
        #endif
    }
}

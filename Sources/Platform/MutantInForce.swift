#if ENGINE_CHECKS
    /// The deliberate bug of this process, from `ENGINE_MUTANT`; `nil` without the variable.
    ///
    /// Each target lists its bugs in a `Mutant` of its own.
    package let mutantInForce = getenv("ENGINE_MUTANT").map { String(cString: $0) }
#endif

/// The options that one source gives: the command line, or a file.
///
/// The last of several values would silently replace the others, so a source gives an option once.
struct GivenOptions {
    private(set) var names: Set<String> = []

    /// Adds an option.
    ///
    /// - Throws: A `ConfigurationError` for `place` if the option was given before and takes one
    ///   value.
    mutating func note(_ name: String, at place: String) throws(ConfigurationError) {
        guard names.insert(name).inserted || ConfigurationKey.repeatable.contains(name) else {
            throw ConfigurationError(
                .optionsConflicting,
                "\(place): the option is given twice; give it once"
            )
        }
    }
}

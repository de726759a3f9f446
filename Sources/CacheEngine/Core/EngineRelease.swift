/// The release of the package that this build belongs to.
package enum EngineRelease {
    /// The version that the programs print; the newest heading of CHANGELOG.md has it too.
    package static let version = "0.1.0"
}

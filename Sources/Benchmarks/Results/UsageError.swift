/// An error that the caller can correct: a flag, a file or a name.
///
/// The description is one line, and the program exits with status 2.
package struct UsageError: Error, Hashable, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

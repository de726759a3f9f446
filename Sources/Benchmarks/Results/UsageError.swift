/// Something the caller can put right: a flag, a file, a name.
///
/// One line; the program exits with 2.
package struct UsageError: Error, Hashable, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

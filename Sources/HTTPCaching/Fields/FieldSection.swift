/// The fields of one message, in order, in a single run of bytes.
///
/// One allocation holds everything, and those bytes are also what the disk stores, so a stored head
/// comes back with one copy and no parsing.
///
///     (name length u16 · value length u32 · name · value)*      little-endian
///
/// Names keep the case they came with and compare without it.
package struct FieldSection: Sendable {
    package private(set) var bytes: [UInt8]

    package init() { bytes = [] }
}

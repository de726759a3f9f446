import HTTPCaching

/// The fields of a response that shares its lines with others: the shared lines in place, followed
/// by the response's own.
///
/// Nothing is copied or written until the fields are read.
struct ServedFields: Sendable {
    /// Lines as `FieldSection` encodes them, which were checked when they were stored; empty if the
    /// response was not stored.
    private let shared: ByteChunk
    private let own: OwnLines
    /// Whether the shared lines that describe the content are left out, as a 304 does.
    private var describesContent = true

    init(_ shared: ByteChunk, _ own: OwnLines) {
        self.shared = shared
        self.own = own
    }

    /// Calls `read` with the shared lines, and then with the others.
    func forEachRun(_ read: (UnsafeRawBufferPointer) -> Void) {
        if !shared.isEmpty {
            shared.withUnsafeBytes { lines in
                if describesContent {
                    read(lines)
                } else {
                    Conditional.forEachNotModifiedRun(ofStored: lines, read)
                }
            }
        }
        own.forEachRun(read)
    }

    /// All fields, as a section of their own.
    var section: FieldSection { section(after: FieldSection()) }

    /// All fields behind those of `first`, as a section of their own.
    func section(after first: FieldSection) -> FieldSection {
        var section = first.withUnsafeBytes {
            FieldSection(trusted: $0, reserving: shared.count + Self.ownBytesUsual)
        }
        forEachRun { section.append(trusted: $0) }
        return section
    }

    /// The fields of a 304 about the response with these fields.
    var ofNotModified: ServedFields {
        var fields = self
        fields.describesContent = false
        return fields
    }

    private static let ownBytesUsual = 128
}

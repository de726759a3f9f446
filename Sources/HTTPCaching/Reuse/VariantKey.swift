/// The values of a request's selecting fields, in one form, as bytes that can be hashed and compared.
///
/// For each name, in the order of `Vary.names`:
///
///     name length u8 · name · present u8 · value length u32 little-endian · value
///
/// Lengths come before contents, so no two different requests give the same bytes.
package struct VariantKey: Hashable, Sendable {
    package private(set) var bytes: [UInt8]

    package init(_ vary: Vary, request: FieldSection, rules: VariantRules = .standard) {
        bytes = []
        Self.append(vary, request: request, rules: rules, to: &bytes)
    }

    /// Appends the key to bytes that the caller keeps and reuses.
    package static func append(
        _ vary: Vary,
        request: FieldSection,
        rules: VariantRules,
        to bytes: inout [UInt8]
    ) {
        for name in vary.names {
            bytes.append(UInt8(name.utf8.count))
            bytes.append(contentsOf: name.utf8)
            bytes.append(request.contains(name) ? 1 : 0)
            let lengthOffset = bytes.count
            bytes.append(contentsOf: [0, 0, 0, 0])
            rules.normalization(of: name).append(name, of: request, to: &bytes)
            let length = UInt32(clamping: bytes.count - lengthOffset - 4)
            for position in 0..<4 {
                bytes[lengthOffset + position] = UInt8(
                    truncatingIfNeeded: length >> UInt32(8 * position)
                )
            }
        }
    }
}

/// The normalised values of a request's selecting fields, as bytes to hash and compare.
///
/// For each name, in the order of `Vary.names`:
///
///     name length u8 · name · form u8 · value length u32 little-endian · value
///
/// The form is 0 if the field is absent, and else the code of its normalisation. Each length precedes
/// its content, so different values never give equal bytes.
public struct VariantKey: Hashable, Sendable {
    public private(set) var bytes: [UInt8]

    public init(_ vary: Vary, request: FieldSection, rules: VariantRules = .standard) {
        bytes = []
        bytes.reserveCapacity(128)
        Self.append(vary, request: request, rules: rules, to: &bytes)
    }

    /// Appends the key to a buffer that the caller reuses; allocates nothing else.
    public static func append(
        _ vary: Vary,
        request: FieldSection,
        rules: VariantRules,
        to bytes: inout [UInt8]
    ) {
        for index in vary.names.indices {
            let name = vary.names[index]
            let normalization = rules.normalization(of: name)
            name.withByteRun { name in
                bytes.append(UInt8(name.count))
                bytes.append(contentsOf: name.buffer)
                let isAbsent = !request.contains(name) && !Mutant.varyIgnoresAbsence.isOn
                bytes.append(isAbsent ? 0 : normalization.code)
                let lengthOffset = bytes.count
                for _ in 0..<4 { bytes.append(0) }
                normalization.append(name, of: request, to: &bytes)
                let length = UInt32(clamping: bytes.count - lengthOffset - 4)
                for position in 0..<4 {
                    bytes[lengthOffset + position] = UInt8(
                        truncatingIfNeeded: length >> UInt32(8 * position)
                    )
                }
            }
        }
    }
}

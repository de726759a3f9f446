/// A range of addresses: `10.0.0.0/8`, `2001:db8::/32` or one address.
struct IPNetwork: Hashable, Sendable {
    let address: IPAddress
    /// Bits of the address, as IPv6, that every member shares.
    let prefixBits: Int

    /// Reads the written form.
    init(parsing text: String) throws(ValueFault) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let fault = ValueFault(
            "`\(text)` is not a network",
            give: "ADDRESS or ADDRESS/BITS, as 10.0.0.0/8 or ::1, or unix"
        )
        guard let first = parts.first, let address = IPAddress(String(first)) else { throw fault }
        let isFour = address.isVersionFour && !first.contains(":")
        var bits = 128
        if parts.count > 1 {
            let digits = parts[1]
            guard digits.utf8.allSatisfy(ByteClass.isDigit), let count = Int(digits),
                count <= (isFour ? 32 : 128)
            else { throw fault }
            bits = isFour ? count + IPAddress.mappedBits : count
        }
        let base = address.prefix(bits)
        guard base == address else {
            throw ValueFault(
                "`\(text)` has address bits behind its prefix",
                give: "\(base.text)/\(isFour ? bits - IPAddress.mappedBits : bits)"
            )
        }
        self.address = address
        prefixBits = bits
    }

    /// Whether the address is in the network; no IPv6 network contains an IPv4 address.
    func contains(_ other: IPAddress) -> Bool {
        other.isVersionFour == isVersionFour && other.prefix(prefixBits) == address
    }

    private var isVersionFour: Bool {
        address.isVersionFour && prefixBits >= IPAddress.mappedBits
    }
}

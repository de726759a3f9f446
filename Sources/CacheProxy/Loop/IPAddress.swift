import Platform

/// A numeric address of IPv4 or IPv6.
///
/// An IPv4 address inside an IPv6 one (`::ffff:192.0.2.1`) equals the IPv4 address: a listener for
/// both families reports the former.
struct IPAddress: Hashable, Sendable {
    /// The address as IPv6, first and last 64 bits.
    let high: UInt64
    let low: UInt64

    /// Bits in front of an IPv4 address inside an IPv6 one.
    static let mappedBits = 96
    private static let mappedPrefix: UInt64 = 0xFFFF
    /// Characters of the longest written form.
    private static let charactersMax = 45

    init(versionFour bits: UInt32) {
        high = 0
        low = Self.mappedPrefix << 32 | UInt64(bits)
    }

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Reads the written form; `nil` for a host name, a zone or another form.
    init?(_ text: String) {
        let isPlausible = text.utf8.allSatisfy { byte in
            let folded = byte | 0x20
            return ByteClass.isDigit(byte) || byte == 0x2E || byte == 0x3A
                || folded >= 0x61 && folded <= 0x66
        }
        guard isPlausible, text.utf8.count <= Self.charactersMax else { return nil }
        var four = in_addr()
        var six = in6_addr()
        if inet_pton(AF_INET, text, &four) == 1 {
            self.init(versionFour: UInt32(bigEndian: four.s_addr))
        } else if inet_pton(AF_INET6, text, &six) == 1 {
            self = withUnsafeBytes(of: &six) { Self(versionSix: $0) }
        } else {
            return nil
        }
    }

    /// The address in 16 bytes, the first one first.
    init(versionSix bytes: UnsafeRawBufferPointer) {
        high = UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
        low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }

    /// The address of a socket; `nil` for a socket in the file system.
    init?(_ socket: sockaddr_storage) {
        let family = Int32(socket.ss_family)
        // The offset of the address in sockaddr_in and sockaddr_in6.
        let address = withUnsafeBytes(of: socket) { bytes -> IPAddress? in
            switch family {
            case AF_INET:
                let four = bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)
                return IPAddress(versionFour: UInt32(bigEndian: four))
            case AF_INET6: return IPAddress(versionSix: .init(rebasing: bytes[8..<24]))
            default: return nil
            }
        }
        guard let address else { return nil }
        self = address
    }

    var isVersionFour: Bool { high == 0 && low >> 32 == Self.mappedPrefix }

    /// The canonical written form.
    var text: String {
        let isFour = isVersionFour
        var bytes = [high.bigEndian, low.bigEndian]
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        bytes.withUnsafeMutableBytes { bytes in
            let offset = isFour ? Self.mappedBits / 8 : 0
            let family = isFour ? AF_INET : AF_INET6
            guard let base = bytes.baseAddress else { return }
            _ = inet_ntop(family, base + offset, &text, socklen_t(text.count))
        }
        return String(
            decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) },
            as: UTF8.self
        )
    }

    /// The address without the bits behind the first `count`.
    func prefix(_ count: Int) -> IPAddress {
        func mask(_ bits: Int) -> UInt64 {
            bits <= 0 ? 0 : bits >= 64 ? .max : ~(UInt64.max >> UInt64(bits))
        }
        return IPAddress(high: high & mask(count), low: low & mask(count - 64))
    }
}

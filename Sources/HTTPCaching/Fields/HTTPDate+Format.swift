/// Formats dates as IMF-fixdate (RFC 9110 §5.6.7), the only form that may be sent.
extension HTTPDate {
    public static let formattedBytes = 29

    /// The times that a four-digit year can express: 0000-01-01 to 9999-12-31.
    static let representable: ClosedRange<Int64> = -62_167_219_200...253_402_300_799

    /// Writes the date's 29 bytes at the start of `target`, without allocating.
    ///
    /// A time outside the four-digit years becomes the nearest time inside them.
    public static func format(_ seconds: Int64, into target: UnsafeMutableRawBufferPointer) {
        precondition(target.count >= formattedBytes)
        let seconds = min(max(seconds, representable.lowerBound), representable.upperBound)
        let days = floorDivide(seconds, 86_400)
        let time = Int(seconds - days * 86_400)
        let (year, month, day) = civil(days: Int(days))
        // 1970-01-01 was a Thursday.
        let weekday = Int(((days + 4) % 7 + 7) % 7)
        copy("SunMonTueWedThuFriSat", from: weekday * 3, count: 3, to: target, at: 0)
        copy(", ", from: 0, count: 2, to: target, at: 3)
        put(day, width: 2, to: target, at: 5)
        target[7] = .space
        copy(
            "JanFebMarAprMayJunJulAugSepOctNovDec",
            from: (month - 1) * 3,
            count: 3,
            to: target,
            at: 8
        )
        target[11] = .space
        put(year, width: 4, to: target, at: 12)
        target[16] = .space
        put(time / 3_600, width: 2, to: target, at: 17)
        target[19] = .colon
        put(time / 60 % 60, width: 2, to: target, at: 20)
        target[22] = .colon
        put(time % 60, width: 2, to: target, at: 23)
        copy(" GMT", from: 0, count: 4, to: target, at: 25)
    }

    public static func string(_ seconds: Int64) -> String {
        String(unsafeUninitializedCapacity: formattedBytes) { target in
            format(seconds, into: UnsafeMutableRawBufferPointer(target))
            return formattedBytes
        }
    }

    private static func put(
        _ value: Int,
        width: Int,
        to target: UnsafeMutableRawBufferPointer,
        at offset: Int
    ) {
        var rest = value
        var position = offset + width
        while position > offset {
            position -= 1
            target[position] = .zero + UInt8(rest % 10)
            rest /= 10
        }
        assert(rest == 0, "the number has no more digits")
    }

    private static func copy(
        _ literal: StaticString,
        from start: Int,
        count: Int,
        to target: UnsafeMutableRawBufferPointer,
        at offset: Int
    ) {
        literal.withUTF8Buffer { bytes in
            for index in 0..<count { target[offset + index] = bytes[start + index] }
        }
    }
}

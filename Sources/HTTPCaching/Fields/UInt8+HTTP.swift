/// The character classes of RFC 9110 §5.6 and RFC 3986 §2, on single bytes.
extension UInt8 {
    public static let tab: UInt8 = 0x09
    public static let space: UInt8 = 0x20
    public static let quote: UInt8 = 0x22
    public static let numberSign: UInt8 = 0x23
    public static let percent: UInt8 = 0x25
    public static let asterisk: UInt8 = 0x2A
    public static let comma: UInt8 = 0x2C
    public static let hyphen: UInt8 = 0x2D
    public static let dot: UInt8 = 0x2E
    public static let slash: UInt8 = 0x2F
    public static let zero: UInt8 = 0x30
    public static let colon: UInt8 = 0x3A
    public static let semicolon: UInt8 = 0x3B
    public static let equalsSign: UInt8 = 0x3D
    public static let questionMark: UInt8 = 0x3F
    public static let backslash: UInt8 = 0x5C

    public var isDigit: Bool { self >= 0x30 && self <= 0x39 }

    public var isUppercase: Bool { self >= 0x41 && self <= 0x5A }

    public var isLowercase: Bool { self >= 0x61 && self <= 0x7A }

    public var isLetter: Bool { isUppercase || isLowercase }

    public var isOptionalWhitespace: Bool { self == .space || self == .tab }

    public var lowercased: UInt8 { isUppercase ? self | 0x20 : self }

    /// RFC 9110 §5.6.2 `tchar`.
    public var isToken: Bool {
        // One bit for each ASCII character: 0-9 ! # $ % & ' * + - . and A-Z a-z ^ _ ` | ~
        let low: UInt64 = 0x03FF_6CFA_0000_0000
        let high: UInt64 = 0x57FF_FFFF_C7FF_FFFE
        return self < 128 && ((self < 64 ? low : high) &>> UInt64(self)) & 1 == 1
    }

    /// RFC 9110 §5.5 `field-content`: visible characters, space, tab, obs-text; no other control.
    public var isFieldContent: Bool { (self >= 0x20 && self != 0x7F) || self == .tab }

    /// RFC 9110 §8.8.3 `etagc`.
    public var isEntityTagContent: Bool {
        self == 0x21 || (self >= 0x23 && self <= 0x7E) || self >= 0x80
    }
}

/// The character classes of RFC 9110 §5.6 and RFC 3986 §2, on single bytes.
extension UInt8 {
    package static let tab: UInt8 = 0x09
    package static let space: UInt8 = 0x20
    package static let quote: UInt8 = 0x22
    package static let numberSign: UInt8 = 0x23
    package static let percent: UInt8 = 0x25
    package static let asterisk: UInt8 = 0x2A
    package static let comma: UInt8 = 0x2C
    package static let hyphen: UInt8 = 0x2D
    package static let dot: UInt8 = 0x2E
    package static let slash: UInt8 = 0x2F
    package static let zero: UInt8 = 0x30
    package static let colon: UInt8 = 0x3A
    package static let semicolon: UInt8 = 0x3B
    package static let equalsSign: UInt8 = 0x3D
    package static let questionMark: UInt8 = 0x3F
    package static let backslash: UInt8 = 0x5C

    package var isDigit: Bool { self >= 0x30 && self <= 0x39 }

    package var isUppercase: Bool { self >= 0x41 && self <= 0x5A }

    package var isLowercase: Bool { self >= 0x61 && self <= 0x7A }

    package var isLetter: Bool { isUppercase || isLowercase }

    package var isOptionalWhitespace: Bool { self == .space || self == .tab }

    package var lowercased: UInt8 { isUppercase ? self | 0x20 : self }

    /// RFC 9110 §5.6.2 `tchar`.
    package var isToken: Bool {
        // One bit for each ASCII character: 0-9 ! # $ % & ' * + - . and A-Z a-z ^ _ ` | ~
        let low: UInt64 = 0x03FF_6CFA_0000_0000
        let high: UInt64 = 0x57FF_FFFF_C7FF_FFFE
        return self < 128 && ((self < 64 ? low : high) &>> UInt64(self)) & 1 == 1
    }

    /// RFC 9110 §5.5 `field-content`: visible characters, space, tab, obs-text; no other control.
    package var isFieldContent: Bool { (self >= 0x20 && self != 0x7F) || self == .tab }

    /// RFC 9110 §8.8.3 `etagc`.
    package var isEntityTagContent: Bool {
        self == 0x21 || (self >= 0x23 && self <= 0x7E) || self >= 0x80
    }
}

/// Text from outside, as it may appear in an error or on a terminal.
package enum PlainText {
    /// The maximum length of a quoted value, in Unicode scalars.
    package static let excerptScalarsMax = 80

    /// The text with control characters and every kind of line end written as `\u{NN}`.
    ///
    /// Error texts quote arguments, files and messages, and a terminal obeys the control characters
    /// in them.
    package static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isUnprintable) else { return text }
        var out = ""
        for scalar in text.unicodeScalars {
            if isUnprintable(scalar) {
                out += "\\u{" + String(scalar.value, radix: 16) + "}"
            } else {
                out.unicodeScalars.append(scalar)
            }
        }
        return out
    }

    /// The first scalars of the text, escaped; `…` replaces the rest.
    package static func excerpt(
        _ text: some StringProtocol,
        scalarsMax: Int = excerptScalarsMax
    ) -> String {
        let scalars = text.unicodeScalars.prefix(scalarsMax)
        let start = escaped(String(String.UnicodeScalarView(scalars)))
        return scalars.endIndex < text.endIndex ? start + "…" : start
    }

    /// The beginning of a text in UTF-8, escaped; `…` replaces the rest.
    package static func excerpt(_ bytes: UnsafeRawBufferPointer) -> String {
        // One byte more than the excerpt can have, so that a longer text is seen to be longer.
        excerpt(String(decoding: bytes.prefix(4 * excerptScalarsMax + 1), as: UTF8.self))
    }

    /// Control characters, format characters (which can reverse the text), and Unicode's two line
    /// ends.
    private static func isUnprintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}

import CacheEngine

/// Why a configuration cannot be used.
struct ConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of fault; an open set, so a new one does not break a `switch`.
    struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code's stable name.
        let description: String

        /// An argument that is no option.
        static let argumentUnexpected = Code(description: "argumentUnexpected")
        /// An option that does not exist.
        static let optionUnknown = Code(description: "optionUnknown")
        /// An option without its value.
        static let valueMissing = Code(description: "valueMissing")
        /// A value that the option cannot have.
        static let valueInvalid = Code(description: "valueInvalid")
        /// No origin is given.
        static let originMissing = Code(description: "originMissing")
        /// Two options that exclude each other, or one option twice.
        static let optionsConflicting = Code(description: "optionsConflicting")
        /// A file that cannot be read, or is too large.
        static let fileUnreadable = Code(description: "fileUnreadable")
        /// A token that is too short.
        static let tokenInvalid = Code(description: "tokenInvalid")
        /// A directory that does not exist.
        static let directoryMissing = Code(description: "directoryMissing")
        /// The process may open too few files.
        static let filesTooFew = Code(description: "filesTooFew")
    }

    /// The kind of fault, for code to branch on.
    let code: Code
    /// One line for people: the place, the value, and what to do.
    let description: String

    /// Controls in `description` are escaped: it may quote an argument or a file.
    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = PlainText.escaped(description)
    }
}

/// Why a value does not fit its option, and what to give instead.
struct ValueFault: Error, Hashable {
    /// A sentence that quotes the value.
    let problem: String
    /// The text after `give`; `nil` if the sentence says what to do.
    let remedy: String?

    init(_ problem: String, give remedy: String? = nil) {
        self.problem = problem
        self.remedy = remedy
    }

    /// One line about the value of the option at `place`.
    func error(at place: String) -> ConfigurationError {
        let advice = remedy.map { "; give \($0)" } ?? ""
        return ConfigurationError(.valueInvalid, "\(place): \(problem)\(advice)")
    }
}

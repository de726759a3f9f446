/// Targeted cache control (RFC 9213): Cache-Control for one class of caches, as a structured field.
extension ResponseDirectives {
    /// The directives of the first target in `names` whose field is present, valid and not empty.
    ///
    /// Returns `nil` if no target has such a field.
    ///
    /// They replace Cache-Control and Expires (RFC 9213 §2.2).
    public static func targeted(
        by names: [String],
        in fields: FieldSection
    ) -> ResponseDirectives? {
        for index in names.indices {
            let found = names[index].withByteRun { targeted(by: $0, in: fields) }
            if let found { return found }
        }
        return nil
    }

    private static func targeted(
        by name: ByteRun,
        in fields: FieldSection
    ) -> ResponseDirectives? {
        var directives = ResponseDirectives()
        var isSound = true
        var hasMember = false
        fields.forEachValue(of: name) { line in
            var dictionary = StructuredDictionary(line)
            while isSound {
                switch dictionary.next() {
                case .end: return
                case .malformed: isSound = false
                case .member(let member):
                    hasMember = true
                    isSound = directives.replace(member)
                }
            }
        }
        return isSound && hasMember ? directives : nil
    }

    /// Applies one member; a later member replaces an earlier one of the same key.
    ///
    /// Returns `false` if a known directive has a value of the wrong type. The whole field is then
    /// invalid.
    private mutating func replace(_ member: StructuredDictionary.Member) -> Bool {
        let key = member.key
        if key.equals(exactly: "max-age") { return Self.set(&maxAgeSeconds, member.value) }
        if key.equals(exactly: "s-maxage") { return Self.set(&sharedMaxAgeSeconds, member.value) }
        if key.equals(exactly: "stale-while-revalidate") {
            return Self.set(&staleWhileRevalidateSeconds, member.value)
        }
        if key.equals(exactly: "stale-if-error") {
            return Self.set(&staleIfErrorSeconds, member.value)
        }
        if key.equals(exactly: "no-cache") {
            return setListing(.noCache, fields: .noCacheFields, member.value)
        }
        if key.equals(exactly: "private") {
            return setListing(.private, fields: .privateFields, member.value)
        }
        guard let flag = Self.flag(key) else { return true }
        guard case .boolean(let isSet) = member.value else { return false }
        set(flag, isSet)
        return true
    }

    private static func flag(_ key: ByteRun) -> Flags? {
        if key.equals(exactly: "no-store") { return .noStore }
        if key.equals(exactly: "public") { return .public }
        if key.equals(exactly: "must-revalidate") { return .mustRevalidate }
        if key.equals(exactly: "proxy-revalidate") { return .proxyRevalidate }
        if key.equals(exactly: "must-understand") { return .mustUnderstand }
        if key.equals(exactly: "no-transform") { return .noTransform }
        return key.equals(exactly: "immutable") ? .immutable : nil
    }

    private static func set(
        _ seconds: inout UInt32?,
        _ value: StructuredDictionary.Value
    ) -> Bool {
        guard case .integer(let number) = value, number >= 0 else { return false }
        seconds = DeltaSeconds.clamp(number)
        return true
    }

    private mutating func setListing(
        _ whole: Flags,
        fields: Flags,
        _ value: StructuredDictionary.Value
    ) -> Bool {
        switch value {
        case .boolean(let isSet):
            set(whole, isSet)
            set(fields, false)
        case .string(let list):
            let argument = DirectiveScanner.Argument.quoted(list)
            set(fields, argument.namesFields)
            set(whole, !argument.namesFields)
            if argument.names("set-cookie") { flags.insert(.namesSetCookie) }
        case .integer, .token, .other: return false
        }
        return true
    }

    private mutating func set(_ flag: Flags, _ isSet: Bool) {
        if isSet { flags.insert(flag) } else { flags.remove(flag) }
    }
}

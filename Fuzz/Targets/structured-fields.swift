import HTTPCaching

/// Structured dictionaries, alone and as targeted cache control.
///
/// A field with a syntax error counts as absent.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let input = [UInt8](UnsafeBufferPointer(start: start, count: count))
    input.withByteRun { untrimmed in
        // A field section drops the whitespace around a value, so the dictionary must not see it.
        let text = untrimmed.trimmed
        var isSound = true
        var members = 0
        var dictionary = StructuredDictionary(text)
        reading: while true {
            switch dictionary.next() {
            case .end: break reading
            case .malformed:
                isSound = false
                break reading
            case .member(let member):
                members += 1
                precondition(!member.key.isEmpty)
            }
        }
        var fields = FieldSection()
        let isValid = "CDN-Cache-Control".withByteRun { fields.append(name: $0, value: text) }
        guard isValid else { return }
        let targeted = ResponseDirectives.targeted(by: ["CDN-Cache-Control"], in: fields)
        if targeted != nil { precondition(isSound && members > 0) }
    }
    return 0
}

import HTTPCaching

/// Cache-Control lines: numbers stay in bounds, and a restriction is never lost.
///
/// A bare restriction appended to a line is seen, regardless of the text before it: as a member of
/// its own, and behind an error in the last member.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let input = [UInt8](UnsafeBufferPointer(start: start, count: count))
    input.withByteRun { line in
        var directives = ResponseDirectives()
        directives.add(line)
        precondition((directives.maxAgeSeconds ?? 0) <= DeltaSeconds.maximum)
        precondition((directives.staleIfErrorSeconds ?? 0) <= DeltaSeconds.maximum)
        var scanner = DirectiveScanner(line)
        while let directive = scanner.next() {
            precondition(FieldSection.isValidName(directive.name))
            _ = directive.argument.namesFields
        }
    }
    for ending in [", no-store", "; no-store", " no-store"] {
        (input + Array(ending.utf8)).withByteRun { line in
            var directives = ResponseDirectives()
            directives.add(line)
            precondition(directives.flags.contains(.noStore))
        }
    }
    let fields = FieldSection([("Cache-Control", String(decoding: input, as: UTF8.self))])
    _ = RequestFacts(method: .get, fields: fields)
    return 0
}

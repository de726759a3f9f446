// sources: Sources/CacheProxy/Wire/ByteClass.swift Sources/CacheProxy/Wire/WireLimits.swift Sources/CacheProxy/Wire/RequestFault.swift Sources/CacheProxy/Wire/BodyFraming.swift Sources/CacheProxy/Wire/RequestHead.swift Sources/CacheProxy/Wire/RequestParser.swift Sources/CacheProxy/Rules/RequestScheme.swift Sources/CacheProxy/Rules/RequestURL.swift Sources/CacheProxy/Mutant.swift
import HTTPCaching

/// Request heads: parsing byte by byte gives the same result, and all ranges lie in the input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = UnsafeRawBufferPointer(start: start, count: count)
    var limits = WireLimits()
    limits.headBytesMax = 2_048
    limits.lineBytesMax = 1_024
    limits.fieldCountMax = 16
    var whole = RequestParser()
    let expected = whole.parse(Span(_unsafeBytes: bytes), limits)
    var pieces = RequestParser()
    var step = RequestParser.Step.needsMore
    var given = 0
    while step == .needsMore, given < count {
        given += 1
        step = pieces.parse(Span(_unsafeBytes: bytes).extracting(..<given), limits)
    }
    if case .complete(let end) = expected {
        precondition(step == expected && end <= count)
        precondition(bytes[end - 1] == 10 && bytes[end - 2] == 13)
        for place in whole.head.fields {
            precondition(place.name.upperBound < place.value.lowerBound || place.value.isEmpty)
            precondition(place.value.upperBound <= end - 2)
            precondition(!bytes[place.value].contains(10) && !bytes[place.value].contains(13))
        }
        precondition(whole.head.fields == pieces.head.fields)
        _ = RequestURL.make(whole.head, bytes, defaultAuthority: "d")
    }
    if case .complete = step { precondition(expected == step) }
    return 0
}

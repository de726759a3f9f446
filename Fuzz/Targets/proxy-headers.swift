// sources: Sources/CacheProxy/Wire/ByteClass.swift Sources/CacheProxy/Wire/ProxyHeader.swift Sources/CacheProxy/Loop/IPAddress.swift Sources/CacheProxy/Rules/RequestScheme.swift
/// PROXY headers: bytes that arrive one by one give the result of the whole, the header ends inside the
/// input, and its address has one written form.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = UnsafeRawBufferPointer(start: start, count: count)
    let expected = ProxyHeaderParser.parse(bytes)
    var step = ProxyHeaderParser.Step.needsMore
    var given = 0
    while step == .needsMore, given < count {
        given += 1
        step = ProxyHeaderParser.parse(UnsafeRawBufferPointer(rebasing: bytes[..<given]))
    }
    precondition(step == expected)
    switch step {
    case .needsMore: precondition(count < 4_096)
    case .refused: break
    case .complete(let header, let end):
        precondition(end == given)
        guard case .client(let address?, _) = header else { break }
        precondition(IPAddress(address.text) == address)
    }
    return 0
}

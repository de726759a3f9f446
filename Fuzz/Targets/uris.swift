import HTTPCaching

/// URI references: a resolved target is a URI that resolves to itself.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let text = String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    guard let base = URIReference("http://h/a/b?c"), let reference = URIReference(text) else {
        return 0
    }
    let resolved = reference.resolved(against: base)
    if resolved.hasSameOrigin(as: base) {
        // Compared in bytes: the last slash and a combining mark behind it are one character.
        precondition(resolved.target.utf8.starts(with: "http://".utf8))
        precondition(URIReference(resolved.target)?.hasSameOrigin(as: base) == true)
    }
    precondition(URIReference(resolved.target)?.target == resolved.target)
    return 0
}

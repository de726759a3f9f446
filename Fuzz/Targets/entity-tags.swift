import HTTPCaching

/// Entity tags: a tag equals itself weakly, and strongly if and only if it is strong.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let input = [UInt8](UnsafeBufferPointer(start: start, count: count))
    input.withByteRun { text in
        var scanner = EntityTagScanner(text)
        while let tag = scanner.next() {
            precondition(tag.weaklyEquals(tag))
            precondition(tag.stronglyEquals(tag) == tag.isStrong)
            precondition(tag.opaque.count <= count)
        }
    }
    return 0
}

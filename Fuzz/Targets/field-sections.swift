import HTTPCaching

/// Bytes from a disk: decoded values encode to the same bytes, and no line contains a control.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let source = UnsafeRawBufferPointer(start: start, count: count)
    if let fields = FieldSection(decoding: source) {
        precondition(fields.bytes.elementsEqual(source))
        var lines = 0
        fields.withUnsafeBytes { bytes in
            var cursor = FieldCursor(bytes)
            while let line = cursor.next() {
                lines += 1
                precondition(FieldSection.isValidName(line.name))
                let value = line.value.buffer
                precondition(!value.contains(0x0A) && !value.contains(0x0D) && !value.contains(0))
            }
        }
        precondition(lines == fields.count)
    }
    if let vary = Vary(decoding: source) {
        var again: [UInt8] = []
        vary.encode(to: &again)
        precondition(again.elementsEqual(source))
    }
    if let facts = StoredFacts(decoding: source) {
        var again = [UInt8](repeating: 0, count: StoredFacts.encodedBytes)
        again.withUnsafeMutableBytes { facts.encode(into: $0) }
        precondition(again.elementsEqual(source.prefix(StoredFacts.encodedBytes)))
    }
    return 0
}

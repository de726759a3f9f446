import HTTPCaching

/// Range and Content-Range: resolved ranges lie in the body; parsed values are written back.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let input = [UInt8](UnsafeBufferPointer(start: start, count: count))
    input.withByteRun { text in
        if let range = ContentRange(text) { precondition(ContentRange(range.text) == range) }
        guard let ranges = RangeSet(text) else { return }
        precondition(ranges.specs.count <= RangeSet.rangesMax)
        for size in [0, 1, 1_000, Int.max] { check(ranges.resolve(bodySize: size), size) }
    }
    return 0
}

private func check(_ resolution: RangeSet.Resolution, _ size: Int) {
    switch resolution {
    case .whole, .unsatisfiable: break
    case .single(let range): precondition(!range.isEmpty && range.upperBound <= size)
    case .multi(let several):
        precondition(several.count > 1)
        for range in several { precondition(!range.isEmpty && range.upperBound <= size) }
        for (index, range) in several.enumerated() {
            for other in several[(index + 1)...] { precondition(!range.overlaps(other)) }
        }
    }
}

import HTTPCaching

/// Dates: a parsed date is written and parsed again as the same second.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let input = [UInt8](UnsafeBufferPointer(start: start, count: count))
    input.withByteRun { text in
        for near: Int64 in [0, 1_795_219_200, .min, .max] {
            guard let seconds = HTTPDate.parse(text, nearSeconds: near) else { continue }
            guard abs(seconds) < 50_000_000_000 else { continue }
            precondition(HTTPDate.parse(HTTPDate.string(seconds), nearSeconds: 0) == seconds)
        }
    }
    return 0
}

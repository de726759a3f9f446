import HTTPCaching
import Synchronization

/// The name of a cache as `Cache-Status` spells it (RFC 9211 §2).
///
/// Every response carries it. A string would be retained and released with each response, by all
/// threads on one cache line. The bytes of a name are therefore kept until the process ends: one
/// copy of each name that an application has given to a cache.
///
/// `@unchecked Sendable`: the bytes are written before the name exists, never change and are never
/// freed.
struct StatusName: @unchecked Sendable {
    /// The number of bytes, as an `Int`, followed by the bytes: a response carries one word.
    private let base: UnsafeRawPointer

    /// The names in use so far, by their text.
    private static let known = Mutex<[String: StatusName]>([:])

    /// The name `name`, as a token or a quoted string.
    init(_ name: String) {
        let text = CacheStatus(identifier: name, outcome: .hit).identifierText
        self = Self.known.withLock { known in
            if let name = known[text] { return name }
            let name = StatusName(copying: text)
            known[text] = name
            return name
        }
    }

    private init(copying text: String) {
        let (start, count) = (MemoryLayout<Int>.size, text.utf8.count)
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: start + count, alignment: 8)
        copy.storeBytes(of: count, as: Int.self)
        UnsafeMutableRawBufferPointer(rebasing: copy[start...]).copyBytes(from: text.utf8)
        // The buffer is not empty, so it has an address.
        base = UnsafeRawPointer(copy.baseAddress.unsafelyUnwrapped)
    }

    var count: Int { base.load(as: Int.self) }

    /// Copies the name to the front of `target`.
    func write(to target: UnsafeMutableRawBufferPointer) {
        let start = base + MemoryLayout<Int>.size
        target.copy(UnsafeRawBufferPointer(start: start, count: count), at: 0)
    }
}

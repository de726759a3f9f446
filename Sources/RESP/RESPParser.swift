/// Parses the replies of a server (RESP2) as their bytes arrive.
///
///     type ──▶ line ──CR──▶ lineFeed ──LF──▶ type
///                               └──$n──▶ bulk ──▶ bulkReturn ──▶ bulkLineFeed ──▶ type
///
/// A pure value. Every byte is given once; the pieces may end anywhere. A byte of a bulk string is
/// copied once, into the array that the caller gets. Bytes that are no reply, and a reply beyond a
/// limit, are refused for good.
///
/// Invariants:
/// 1. `frames.count <= limits.depthMax`, and every frame lacks at least one element.
/// 2. `line.count` is at most the limit of its type.
/// 3. `bulk.count + bulkRemaining <= limits.bulkBytesMax`.
/// 4. `totalBytes <= limits.totalBytesMax`.
package struct RESPParser: Sendable {
    package enum Step: Hashable, Sendable {
        /// All bytes are used up.
        case needsMore
        /// A whole reply ends before this offset; the next one begins there.
        case value(RESPValue, end: Int)
        case refused(RESPFault)
    }

    private enum State: Hashable {
        case type
        case line
        case lineFeed
        case bulk
        case bulkReturn
        case bulkLineFeed
    }

    /// An array whose elements are arriving.
    private struct Frame {
        var values: [RESPValue]
        var remaining: Int
    }

    private enum Wire {
        static let simple = UInt8(ascii: "+")
        static let error = UInt8(ascii: "-")
        static let integer = UInt8(ascii: ":")
        static let bulk = UInt8(ascii: "$")
        static let array = UInt8(ascii: "*")
        static let carriageReturn = UInt8(ascii: "\r")
        static let lineFeed = UInt8(ascii: "\n")
    }

    /// The elements that an array has room for when it is announced; a longer one grows.
    private static let reservedElementsMax = 64

    package let limits: RESPLimits
    private var state = State.type
    private var type: UInt8 = 0
    /// The bytes of a line that arrived in earlier pieces.
    private var line: [UInt8] = []
    private var bulk: [UInt8] = []
    private var bulkRemaining = 0
    private var frames: [Frame] = []
    private var totalBytes = 0
    private var fault: RESPFault?

    package init(_ limits: RESPLimits = RESPLimits()) { self.limits = limits }

    /// Whether no byte of the next reply has arrived.
    package var isBetweenReplies: Bool { state == .type && frames.isEmpty && fault == nil }

    /// Parses from `offset` on, up to the end of one reply.
    package mutating func parse(_ bytes: Span<UInt8>, from offset: Int = 0) -> Step {
        if let fault { return .refused(fault) }
        var place = offset
        do {
            while place < bytes.count {
                if let value = try advance(bytes, &place) {
                    totalBytes = 0
                    return .value(value, end: place)
                }
            }
        } catch {
            fault = error
            frames = []
            bulk = []
            return .refused(error)
        }
        #if ENGINE_CHECKS
            checkInvariants()
        #endif
        return .needsMore
    }

    /// Takes at least one byte; returns the reply that ends with it.
    private mutating func advance(
        _ bytes: Span<UInt8>,
        _ place: inout Int
    ) throws(RESPFault) -> RESPValue? {
        switch state {
        case .type:
            type = bytes[place]
            place += 1
            guard Self.isType(type) else { throw .unknownType(type) }
            state = .line
            return try readLine(bytes, &place)
        case .line: return try readLine(bytes, &place)
        case .lineFeed:
            guard bytes[place] == Wire.lineFeed else { throw .malformedLineEnd }
            place += 1
            return try endLine()
        case .bulk:
            takeBulk(bytes, &place)
            return nil
        case .bulkReturn:
            guard bytes[place] == Wire.carriageReturn else { throw .bulkEndMissing }
            place += 1
            state = .bulkLineFeed
            return nil
        case .bulkLineFeed:
            guard bytes[place] == Wire.lineFeed else { throw .bulkEndMissing }
            place += 1
            let whole = bulk
            bulk = []
            return close(.bulk(whole))
        }
    }

    private static func isType(_ byte: UInt8) -> Bool {
        switch byte {
        case Wire.simple, Wire.error, Wire.integer, Wire.bulk,
            Wire.array:
            true
        default: false
        }
    }
}

// MARK: - Lines

extension RESPParser {
    /// The bytes that a line of the current type may have.
    private var lineBytesMax: Int {
        type == Wire.simple || type == Wire.error
            ? limits.lineBytesMax : RESPLimits.numberBytesMax
    }

    private mutating func readLine(
        _ bytes: Span<UInt8>,
        _ place: inout Int
    ) throws(RESPFault) -> RESPValue? {
        let start = place
        let end = min(bytes.count, start + lineBytesMax - line.count + 1)
        while place < end, bytes[place] != Wire.carriageReturn {
            if bytes[place] == Wire.lineFeed { throw .malformedLineEnd }
            place += 1
        }
        guard line.count + place - start <= lineBytesMax else { throw lineFault }
        let run = bytes.extracting(start..<place)
        guard place < bytes.count else {
            Self.append(run, to: &line)
            return nil
        }
        // After the CR.
        place += 1
        if line.isEmpty, place < bytes.count, bytes[place] == Wire.lineFeed {
            place += 1
            return try endLine(run)
        }
        Self.append(run, to: &line)
        state = .lineFeed
        return nil
    }

    private var lineFault: RESPFault {
        lineBytesMax == RESPLimits.numberBytesMax && type != Wire.simple
            && type != Wire.error
            ? .malformedNumber(type: type) : .lineTooLong(bytesMax: lineBytesMax)
    }

    /// Ends a line whose bytes arrived in several pieces.
    private mutating func endLine() throws(RESPFault) -> RESPValue? {
        let whole = line
        line = []
        return try endLine(whole.span)
    }

    private mutating func endLine(_ run: Span<UInt8>) throws(RESPFault) -> RESPValue? {
        state = .type
        switch type {
        case Wire.simple:
            try charge(run.count)
            return close(.simple(text(run)))
        case Wire.error:
            try charge(run.count)
            return close(.error(text(run)))
        case Wire.integer: return close(.integer(try number(run)))
        case Wire.bulk: return try beginBulk(try number(run))
        default: return try beginArray(try number(run))
        }
    }

    /// An optional sign and digits, within 64 bits.
    private func number(_ run: Span<UInt8>) throws(RESPFault) -> Int64 {
        guard !run.isEmpty else { throw .malformedNumber(type: type) }
        let isNegative = run[0] == UInt8(ascii: "-")
        let digits =
            isNegative || run[0] == UInt8(ascii: "+") ? run.extracting(droppingFirst: 1) : run
        var value: Int64 = 0
        guard !digits.isEmpty else { throw .malformedNumber(type: type) }
        for index in 0..<digits.count {
            let byte = digits[index]
            guard (0x30...0x39).contains(byte) else { throw .malformedNumber(type: type) }
            let (tenfold, isTooLarge) = value.multipliedReportingOverflow(by: 10)
            // Downwards, because the smallest number has no positive counterpart.
            let (next, overflows) = tenfold.subtractingReportingOverflow(Int64(byte - 0x30))
            guard !isTooLarge, !overflows else { throw .malformedNumber(type: type) }
            value = next
        }
        // No server writes -0, and other parsers refuse it.
        guard isNegative ? value != 0 : value != .min else { throw .malformedNumber(type: type) }
        return isNegative ? value : -value
    }

    /// Static: an instance would be copied, because the array is a part of it, and the array with it.
    private static func append(_ run: Span<UInt8>, to array: inout [UInt8]) {
        run.withUnsafeBufferPointer { array.append(contentsOf: $0) }
    }

    private func text(_ run: Span<UInt8>) -> String {
        run.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }

    /// Counts bytes of the reply, before memory is taken for them.
    private mutating func charge(_ count: Int) throws(RESPFault) {
        guard count <= limits.totalBytesMax - totalBytes else {
            throw .replyTooLarge(bytes: totalBytes + count, bytesMax: limits.totalBytesMax)
        }
        totalBytes += count
    }
}

// MARK: - Bulk strings and arrays

extension RESPParser {
    private mutating func beginBulk(_ length: Int64) throws(RESPFault) -> RESPValue? {
        guard length != -1 else { return close(.nilBulk) }
        guard length >= 0 else { throw .negativeLength(length) }
        guard length <= limits.bulkBytesMax || Mutant.takesAnyBulk.isOn else {
            throw .bulkTooLarge(bytes: length, bytesMax: limits.bulkBytesMax)
        }
        try charge(Int(length))
        bulkRemaining = Int(length)
        state = length == 0 ? .bulkReturn : .bulk
        return nil
    }

    private mutating func takeBulk(_ bytes: Span<UInt8>, _ place: inout Int) {
        let run = bytes.extracting(place..<place + min(bulkRemaining, bytes.count - place))
        if run.count == bulkRemaining, bulk.isEmpty {
            bulk = run.withUnsafeBufferPointer { [UInt8]($0) }
        } else {
            // All at once: an array that grows would copy its bytes again.
            if bulk.isEmpty { bulk.reserveCapacity(bulkRemaining) }
            Self.append(run, to: &bulk)
        }
        place += run.count
        bulkRemaining -= run.count
        if bulkRemaining == 0 { state = .bulkReturn }
    }

    private mutating func beginArray(_ count: Int64) throws(RESPFault) -> RESPValue? {
        guard count != -1 else { return close(.nilArray) }
        guard count >= 0 else { throw .negativeLength(count) }
        guard count <= limits.arrayCountMax else {
            throw .arrayTooLong(count: count, countMax: limits.arrayCountMax)
        }
        let (bytes, overflows) = Int(count).multipliedReportingOverflow(by: RESPLimits.elementBytes)
        try charge(overflows ? .max - totalBytes : bytes)
        guard count > 0 else { return close(.array([])) }
        guard frames.count < limits.depthMax else {
            throw .nestedTooDeep(depthMax: limits.depthMax)
        }
        var values: [RESPValue] = []
        values.reserveCapacity(min(Int(count), Self.reservedElementsMax))
        frames.append(Frame(values: values, remaining: Int(count)))
        return nil
    }

    /// Puts a value into the innermost array; returns the reply if the value completes it.
    private mutating func close(_ value: RESPValue) -> RESPValue? {
        state = .type
        var whole = value
        while !frames.isEmpty {
            let last = frames.count - 1
            frames[last].values.append(whole)
            frames[last].remaining -= 1
            guard frames[last].remaining == 0 else { return nil }
            whole = .array(frames.removeLast().values)
        }
        return whole
    }

    #if ENGINE_CHECKS
        private func checkInvariants() {
            precondition(frames.count <= limits.depthMax)
            precondition(frames.allSatisfy { $0.remaining > 0 })
            precondition(line.count <= lineBytesMax)
            precondition(bulk.count + bulkRemaining <= limits.bulkBytesMax)
            precondition(totalBytes <= limits.totalBytesMax)
        }
    #endif
}

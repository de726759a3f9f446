import Platform

/// Recorded requests: each names an object and the object's size in bytes.
package struct RequestTrace: Sendable {
    package struct Request: Sendable {
        package let object: UInt64
        package let sizeBytes: UInt32
    }

    package private(set) var requests: [Request] = []
    /// The number of distinct objects requested.
    package private(set) var objectCount = 0
    /// The bytes of all distinct objects; each counts once, with its first size.
    package private(set) var distinctBytes = 0
    private var seen: Set<UInt64> = []

    package init() {}

    /// Reads lines `time,object,size` from a file.
    ///
    /// If the path ends in `.zst`, the `zstd` program unpacks the file.
    package init(path: String) throws {
        var lines = LineFields(path: path)
        if path.hasSuffix(".zst") {
            let unpacking = try Subprocess(["zstd", "-dc", "--", path])
            while let bytes = try unpacking.receiveBytes() { try lines.take(bytes, &self) }
            guard unpacking.finish() == 0 else {
                throw UsageError("\(path): zstd cannot unpack the file")
            }
        } else {
            try Self.readFile(path) { try lines.take($0, &self) }
        }
        try lines.finish(&self)
        guard !requests.isEmpty else {
            throw UsageError("\(path): the file has no lines time,object,size")
        }
        seen = []
    }

    package mutating func append(object: UInt64, sizeBytes: UInt64) {
        // An entry cannot declare more than four gigabytes.
        let size = UInt32(clamping: sizeBytes)
        requests.append(Request(object: object, sizeBytes: size))
        if seen.insert(object).inserted {
            objectCount += 1
            distinctBytes += Int(size)
        }
    }

    private static func readFile(_ path: String, _ take: ([UInt8]) throws -> Void) throws {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw TextFile.unreadable(path) }
        defer { close(file) }
        while true {
            var chunk = [UInt8](repeating: 0, count: 1 << 16)
            let count = chunk.withUnsafeMutableBytes { read(file, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw TextFile.unreadable(path) }
            guard count > 0 else { return }
            try take(Array(chunk[..<count]))
        }
    }
}

/// Splits bytes into lines of three numbers; a line may span several chunks.
private struct LineFields {
    private var numbers: (UInt64, UInt64, UInt64) = (0, 0, 0)
    private var field = 0
    private var hasDigits = false
    private var lineNumber = 1
    private let path: String

    init(path: String) { self.path = path }

    private var invalidLine: UsageError {
        UsageError("\(path): line \(lineNumber) is not time,object,size")
    }

    mutating func take(_ bytes: [UInt8], _ trace: inout RequestTrace) throws {
        for byte in bytes { try take(byte, &trace) }
    }

    mutating func finish(_ trace: inout RequestTrace) throws {
        if field > 0 || hasDigits { try endLine(&trace) }
    }

    private mutating func take(_ byte: UInt8, _ trace: inout RequestTrace) throws {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"):
            let digit = UInt64(byte - UInt8(ascii: "0"))
            hasDigits = true
            switch field {
            case 0: numbers.0 = numbers.0 &* 10 &+ digit
            case 1: numbers.1 = numbers.1 &* 10 &+ digit
            default: numbers.2 = numbers.2 &* 10 &+ digit
            }
        case UInt8(ascii: ",") where hasDigits && field < 2:
            field += 1
            hasDigits = false
        case UInt8(ascii: "\r"): break
        case UInt8(ascii: "\n"): try endLine(&trace)
        default: throw invalidLine
        }
    }

    private mutating func endLine(_ trace: inout RequestTrace) throws {
        guard field == 2, hasDigits else {
            throw invalidLine
        }
        trace.append(object: numbers.1, sizeBytes: numbers.2)
        lineNumber += 1
        (numbers, field, hasDigits) = ((0, 0, 0), 0, false)
    }
}

import CacheTestSupport
import Foundation
import Platform
import Testing

@testable import CacheProxy

/// The memory that many connections take.
@Suite(.serialized) struct FootprintTests {
    static let idleCount = 10_000
    static let activeCount = 1_000
    /// The limit of an idle connection: its object and its places in the worker's tables.
    static let idleBytesMax = 1_024
    /// The limit of a connection that has received part of a request head of 4 KiB.
    static let activeBytesMax = 16 * 1_024

    @Test func tenThousandIdleAndAThousandActiveStayWithinTheirMemory() async throws {
        let origin = try WireOrigin { _, socket in
            try socket.answer(200, ["Cache-Control: max-age=600"], "hot")
        }
        defer { origin.stop() }
        let process = Process()
        process.executableURL = ProcessTests.program
        process.arguments = [
            "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--head-timeout", "600",
            "--idle-timeout", "600", "--origin", "http://127.0.0.1:\(origin.port)",
        ]
        let errors = Pipe()
        process.standardError = errors
        try process.run()
        defer {
            process.terminate()
            process.waitUntilExit()
        }
        let (port, admin) = try await Self.ports(errors)
        let pid = process.processIdentifier
        let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
        _ = try await WireClient(port).exchange(get)
        _ = try await Self.openCount(admin)

        let before = Self.residentBytes(pid)
        let idle = try await onThread { try Self.openMany(Self.idleCount, to: port) }
        defer { for socket in idle { close(socket) } }
        try await Self.wait(until: Self.idleCount, at: admin)
        let withIdle = Self.residentBytes(pid)
        #expect(withIdle - before < Self.idleCount * Self.idleBytesMax)

        let active = try await onThread { try Self.openMany(Self.activeCount, to: port) }
        defer { for socket in active { close(socket) } }
        let part = "GET / HTTP/1.1\r\nHost: x\r\nX: \(String(repeating: "a", count: 4_000))"
        try await onThread { for socket in active { try Self.write(part, to: socket) } }
        try await Self.wait(until: Self.idleCount + Self.activeCount, at: admin)
        let withActive = Self.residentBytes(pid)
        #expect(withActive - withIdle < Self.activeCount * Self.activeBytesMax)

        try await onThread {
            for socket in active {
                try Self.write("\r\n\r\n", to: socket)
                var answer = [UInt8](repeating: 0, count: 4_096)
                guard recv(socket, &answer, answer.count, 0) > 0 else { throw WireFailure("recv") }
            }
        }
        #expect(try await WireClient(port).exchange(get).text == "hot")
        print(
            "idle connection: \((withIdle - before) / Self.idleCount) bytes,",
            "in a head of 4 KiB: \((withActive - withIdle) / Self.activeCount) bytes"
        )
    }

    /// The two ports that the program prints.
    static func ports(_ errors: Pipe) async throws -> (UInt16, UInt16) {
        let handle = errors.fileHandleForReading
        let text = try await onThread {
            var text = ""
            while !text.contains("Administration on") || !text.hasSuffix("\n") {
                let data = handle.availableData
                if data.isEmpty { break }
                text += String(decoding: data, as: UTF8.self)
            }
            return text
        }
        let ports = text.split(separator: "\n").compactMap {
            $0.firstMatch(of: /:(\d+)/).flatMap { UInt16($0.1) }
        }
        guard ports.count == 2 else { throw WireFailure("No ports: \(text)") }
        return (ports[0], ports[1])
    }

    static func openCount(_ admin: UInt16) async throws -> Int {
        let text = try await WireClient(admin).exchange(
            "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
        ).text
        let line = text.split(separator: "\n").first { $0.hasPrefix("proxy_connections_open ") }
        return line.flatMap { Int($0.dropFirst(23)) } ?? -1
    }

    static func wait(until count: Int, at admin: UInt16) async throws {
        for _ in 0..<400 {
            if try await openCount(admin) >= count { return }
            await pause(milliseconds: 20)
        }
        throw WireFailure("Not all connections were accepted")
    }

    static func openMany(_ count: Int, to port: UInt16) throws -> [Int32] {
        try (0..<count).map { _ in
            let socket = WireSocket.make()
            var address = WireSocket.address(port)
            let result = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            guard socket >= 0, result == 0 else { throw WireFailure("connect: \(errno)") }
            return socket
        }
    }

    static func write(_ text: String, to socket: Int32) throws {
        let bytes = Array(text.utf8)
        guard send(socket, bytes, bytes.count, 0) == bytes.count else {
            throw WireFailure("send: \(errno)")
        }
    }

    static func residentBytes(_ pid: Int32) -> Int {
        let text = (try? String(contentsOfFile: "/proc/\(pid)/statm", encoding: .utf8)) ?? ""
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * Int(getpagesize())
    }
}

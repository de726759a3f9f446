import Platform
import Testing

/// The addresses that clients of the network connect to.
@Suite struct SocketAddressTests {
    @Test(arguments: [("127.0.0.1", AF_INET), ("::1", AF_INET6), ("[::1]", AF_INET6)])
    func numericHostIsAnAddress(_ row: (host: String, family: Int32)) throws {
        let address = try #require(SocketAddress.literal(row.host, port: 80))
        #expect(address.family == row.family)
        #expect(address == SocketAddress.literal(row.host, port: 80))
        #expect(address != SocketAddress.literal(row.host, port: 81))
    }

    @Test(arguments: ["", "localhost", "a.invalid"])
    func nameIsNoAddress(_ host: String) {
        #expect(SocketAddress.literal(host, port: 80) == nil)
    }

    /// A name server cannot make a client try addresses without end.
    @Test(arguments: [0, 1, SocketAddress.countMax, SocketAddress.countMax + 1, 1_000])
    func addressesOfOneNameAreLimited(_ count: Int) {
        var places = (0..<count).map { number in
            var place = sockaddr_in()
            place.sin_family = sa_family_t(AF_INET)
            place.sin_port = in_port_t(number)
            return place
        }
        let nodes = UnsafeMutableBufferPointer<addrinfo>.allocate(capacity: count)
        defer { nodes.deallocate() }
        nodes.initialize(repeating: addrinfo())
        places.withUnsafeMutableBytes { bytes in
            let size = MemoryLayout<sockaddr_in>.stride
            for index in nodes.indices {
                nodes[index].ai_family = AF_INET
                nodes[index].ai_addrlen = socklen_t(size)
                nodes[index].ai_addr = bytes.baseAddress.map {
                    ($0 + index * size).assumingMemoryBound(to: sockaddr.self)
                }
                if index > 0 { nodes[index - 1].ai_next = nodes.baseAddress.map { $0 + index } }
            }
            let found = SocketAddress.addresses(in: count == 0 ? nil : nodes.baseAddress)
            #expect(found.count == min(count, SocketAddress.countMax))
            #expect(Set(found).count == found.count)
        }
    }
}

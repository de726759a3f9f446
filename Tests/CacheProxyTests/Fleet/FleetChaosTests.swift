import CacheTestSupport
import Foundation
import Platform
import RedisTestSupport
import Synchronization
import Testing

/// R25 with real processes: three cache-proxies over a cluster of Redis, with a fault in each
/// round.
@Suite(
    .enabled(if: RedisProcess.isInstalled, "\(RedisProcess.remedy)"),
    .timeLimit(.minutes(FleetRounds.minutesMax)),
    .serialized
)
struct FleetChaosTests {
    private enum Fault: CaseIterable {
        case killLogMaster
        case killDataMaster
        case stopLogMaster
        case stopEveryServer
        case moveSlots
        case killProxy
        case stopProxy
    }

    private static let logKey = "ce1:test:{log}:s"
    /// The growth of memory that is permitted behind the first third of the rounds.
    private static let growthMax = 1.05

    @Test func noFaultServesWhatWasPurged() async throws {
        let pages = VersionedPages()
        let origin = try pages.origin()
        defer { origin.stop() }
        let cluster = try await RedisCluster()
        var proxies: [ProxyProcess] = []
        for name in ["a", "b", "c"] {
            proxies.append(try await ProxyProcess(name, origin: origin.port, fleet: cluster.url))
        }
        let load = FleetLoad(pages, proxies.map { ($0.port, $0.admin) })
        try await settle(proxies, pages)
        var random = SeededRandom(seed: 25)
        var faults: [Fault] = []
        // Those that are never killed: what they take must not grow.
        var resident: [Int] = []
        var descriptors: [Int] = []
        for round in 0..<FleetRounds.scaled(3, to: 42) {
            if faults.isEmpty { faults = Fault.allCases.shuffled(using: &random) }
            let fault = faults.removeLast()
            try await load.during(exempt: Self.machines(under: fault)) {
                await pause(milliseconds: 300)
                try await cause(fault, cluster, proxies[2], &random)
                await pause(milliseconds: 500)
            }
            try await settle(proxies, pages)
            origin.forget()
            resident.append(proxies[0].residentBytes + proxies[1].residentBytes)
            descriptors.append(proxies[0].descriptorCount + proxies[1].descriptorCount)
            #expect(pages.violations.isEmpty, "round \(round), \(fault)")
            guard pages.violations.isEmpty else { break }
        }
        print(
            "\(pages.answers) answers, \(load.purges) purges with a receipt; two machines had "
                + "\(resident.map { $0 >> 10 }) KiB and \(descriptors) descriptors"
        )
        #expect(pages.answers > 1_000)
        let third = resident.count / 3
        let early = try #require(resident[...third].max())
        // The memory fills up in the first rounds.
        if resident.count > 20 {
            #expect(Double(resident[resident.count - 1]) <= Double(early) * Self.growthMax)
            #expect(descriptors[descriptors.count - 1] <= descriptors[...third].max() ?? 0)
        }
        for proxy in proxies where !pages.violations.isEmpty { print(proxy.log.suffix(2_000)) }
    }

    /// The machine whose clients may see an error meanwhile.
    private static func machines(under fault: Fault) -> Set<Int> {
        switch fault {
        case .killProxy, .stopProxy: [2]
        default: []
        }
    }

    private func cause(
        _ fault: Fault,
        _ cluster: RedisCluster,
        _ proxy: ProxyProcess,
        _ random: inout SeededRandom
    ) async throws {
        let log = try await cluster.master(of: Self.logKey)
        switch fault {
        case .killLogMaster: try await replace(log, Self.logKey, cluster)
        case .killDataMaster:
            let key = try await Self.dataKey(cluster, besides: log)
            try await replace(try await cluster.master(of: key), key, cluster)
        case .stopLogMaster:
            log.stop()
            await pause(milliseconds: Int32.random(in: 300...3_000, using: &random))
            log.resume()
        case .stopEveryServer:
            for server in cluster.servers { server.stop() }
            await pause(milliseconds: Int32.random(in: 300...2_000, using: &random))
            for server in cluster.servers { server.resume() }
        case .moveSlots:
            let key = try await Self.dataKey(cluster, besides: log)
            let target = try await cluster.master(of: key)
            try await cluster.move(slots: 200, from: log, to: target)
        case .killProxy:
            proxy.kill()
            await pause(milliseconds: Int32.random(in: 100...2_000, using: &random))
            try await proxy.start()
        case .stopProxy:
            proxy.stop()
            await pause(milliseconds: Int32.random(in: 300...4_000, using: &random))
            proxy.resume()
        }
    }

    /// A key whose master is not that of the log.
    private static func dataKey(
        _ cluster: RedisCluster,
        besides log: RedisProcess
    ) async throws -> String {
        for number in 0..<100 where try await cluster.master(of: "\(number)").port != log.port {
            return "\(number)"
        }
        throw WireFailure("One server has all slots")
    }

    /// Kills a master, and starts it again once its replica has taken over.
    private func replace(
        _ master: RedisProcess,
        _ key: String,
        _ cluster: RedisCluster
    ) async throws {
        master.kill()
        let isReplaced = await eventually {
            guard let next = try? await cluster.master(of: key) else { return false }
            return next.port != master.port
        }
        guard isReplaced else { throw WireFailure("No replica took over") }
        try await master.start()
    }

    /// Waits until every machine has read the log to its end; then none serves what any purge with
    /// a receipt covers.
    private func settle(_ proxies: [ProxyProcess], _ pages: VersionedPages) async throws {
        let isSettled = await eventually(seconds: 40) {
            let answer = try? await proxies[0].purge(
                "/none",
                "Cache-Tag: none\r\nPurge-Wait: fleet\r\n"
            )
            return answer?.0 == 200 && answer?.1["applied"] as? Int == proxies.count
        }
        guard isSettled else {
            throw WireFailure(proxies.map { String($0.log.suffix(500)) }.joined(separator: "\n"))
        }
        var last = ""
        let areCurrent = await eventually {
            for (number, proxy) in proxies.enumerated() {
                for page in 0..<VersionedPages.count {
                    let body = try? await FleetLoad.get(page, proxy.port)
                    last = "machine \(number), page \(page): \(body?.prefix(20) ?? "no answer")"
                    guard let body, pages.isCurrent(page, body) else { return false }
                }
            }
            return true
        }
        if !areCurrent { pages.failed("After the round, \(last)") }
    }
}

/// Clients of three machines that ask for pages, and one that changes pages and purges them.
private final class FleetLoad: Sendable {
    private let pages: VersionedPages
    private let ports: [(clients: UInt16, admin: UInt16)]
    private let isOver = Atomic(false)
    private let purgeCount = Atomic(0)

    init(_ pages: VersionedPages, _ ports: [(clients: UInt16, admin: UInt16)]) {
        self.pages = pages
        self.ports = ports
    }

    /// The purges that had a receipt.
    var purges: Int { purgeCount.load(ordering: .relaxed) }

    static func request(_ page: Int) -> String {
        "GET /page/\(page) HTTP/1.1\r\nHost: fleet.test\r\n\r\n"
    }

    static func get(_ page: Int, _ port: UInt16) async throws -> String {
        let response = try await WireClient(port).exchange(request(page))
        guard response.status == 200, response.isComplete else {
            throw WireFailure(response.statusLine)
        }
        return response.text
    }

    /// Runs `body` under load; the clients of the machines in `exempt` may see errors.
    func during(exempt: Set<Int>, _ body: () async throws -> Void) async throws {
        isOver.store(false, ordering: .relaxed)
        try await withThrowingTaskGroup { group in
            for machine in ports.indices {
                group.addTask {
                    try await onThread { self.ask(machine, mayFail: exempt.contains(machine)) }
                }
            }
            group.addTask { await self.changePages() }
            defer { isOver.store(true, ordering: .relaxed) }
            try await body()
        }
    }

    private func ask(_ machine: Int, mayFail: Bool) {
        var random = SystemRandomNumberGenerator()
        var client: WireClient?
        while !isOver.load(ordering: .relaxed) {
            let page = Int.random(in: 0..<VersionedPages.count, using: &random)
            let start = monotonicNanoseconds()
            do {
                let open = try client ?? WireClient(ports[machine].clients)
                client = open
                try open.socket.write(Self.request(page))
                let response = try open.read(isHead: false)
                guard response.status == 200, response.isComplete else {
                    throw WireFailure(response.statusLine)
                }
                pages.judge(page, response.text, from: "machine \(machine)", began: start)
            } catch {
                client = nil
                if !mayFail { pages.failed("machine \(machine), page \(page): \(error)") }
                poll(nil, 0, 10)
            }
            poll(nil, 0, 1)
        }
    }

    /// Changes pages and purges them, by URL and by tag, at a machine without a fault.
    private func changePages() async {
        var number = 0
        while !isOver.load(ordering: .relaxed) {
            number += 1
            let page = Int.random(in: 0..<VersionedPages.count)
            let version = pages.change(page)
            let receipt = try? await purge(page, byTag: number.isMultiple(of: 2), at: number % 2)
            if let receipt {
                pages.purged(page, to: version, isReplicated: receipt > 0)
                purgeCount.add(1, ordering: .relaxed)
            }
            await pause(milliseconds: 10)
        }
    }

    /// The number of replicas that confirmed the purge; throws without a receipt.
    private func purge(_ page: Int, byTag: Bool, at machine: Int) async throws -> Int {
        let tag = byTag ? "Cache-Tag: tag\(page)\r\n" : ""
        let response = try await WireClient(ports[machine].admin).exchange(
            "PURGE \(byTag ? "/" : "/page/\(page)") HTTP/1.1\r\nHost: fleet.test\r\n"
                + "Authorization: Bearer \(ProxyProcess.token)\r\n\(tag)\r\n"
        )
        guard response.status < 300,
            let replicas = response.text.firstMatch(of: /"replicated":(\d+)/)
        else { throw WireFailure(response.statusLine) }
        return Int(replicas.1) ?? 0
    }
}

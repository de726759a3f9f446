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
    /// The growth that is permitted after the first third of the rounds.
    private static let growthMax = 1.25
    /// The bytes by which a machine remembers a purge, to restore it: at most 65,536 of them.
    private static let purgeBytesMax = 512

    @Test func noFaultServesWhatWasPurged() async throws {
        let pages = VersionedPages()
        let watching = Task { await pages.witness.watch() }
        defer { watching.cancel() }
        let origin = try pages.origin()
        defer { origin.stop() }
        let cluster = try await RedisCluster()
        var proxies: [ProxyProcess] = []
        // The one that is killed and started again has a disk, whose segments are open files.
        for name in ["a", "b", "c"] {
            proxies.append(
                try await ProxyProcess(
                    name,
                    origin: origin.port,
                    fleet: cluster.url,
                    hasDisk: name == "c"
                )
            )
        }
        let load = FleetLoad(pages, proxies.map { ($0.port, $0.admin) })
        try await settle(proxies, pages)
        // The check runs few rounds, each hour with other faults.
        let seed = UInt64(Date().timeIntervalSince1970 / 3_600)
        var random = SeededRandom(seed: seed)
        var faults: [Fault] = []
        // Of those that are never killed.
        var resources: [Resources] = []
        for round in 0..<FleetRounds.scaled(3, to: 42) {
            if faults.isEmpty { faults = Fault.allCases.shuffled(using: &random) }
            let fault = faults.removeLast()
            let purgesBefore = load.purges
            try await load.during(round, exempt: Self.machines(under: fault)) {
                await pause(milliseconds: 300)
                try await cause(fault, cluster, proxies[2], pages, &random)
                await pause(milliseconds: 500)
            }
            try await settle(proxies, pages)
            origin.forget()
            resources.append(Resources(of: proxies[..<2], load.purges, behind: fault))
            #expect(pages.violations.isEmpty, "seed \(seed), round \(round), \(fault)")
            #expect(load.purges > purgesBefore, "seed \(seed), round \(round), \(fault)")
            guard pages.violations.isEmpty else { break }
        }
        print("seed \(seed): \(pages.answers) answers; of two machines: \(resources)")
        #expect(pages.answers > 1_000)
        if resources.count > 20 { expectNoGrowth(resources) }
        for proxy in proxies where !pages.violations.isEmpty { print(proxy.log.suffix(2_000)) }
    }

    /// What some machines take together after a fault, and the purges until then.
    private struct Resources: CustomStringConvertible {
        let fault: Fault
        let residentBytes: Int
        let descriptors: Int
        let purges: Int

        init(of proxies: ArraySlice<ProxyProcess>, _ purges: Int, behind fault: Fault) {
            self.fault = fault
            residentBytes = proxies.reduce(0) { $0 + $1.residentBytes }
            descriptors = proxies.reduce(0) { $0 + $1.descriptorCount }
            self.purges = purges
        }

        var description: String {
            "\(fault): \(residentBytes >> 10) KiB, \(descriptors) descriptors, \(purges) purges"
        }
    }

    private func expectNoGrowth(_ resources: [Resources]) {
        let early = resources[resources.count / 3]
        let last = resources[resources.count - 1]
        let purgeBytes = 2 * (last.purges - early.purges) * Self.purgeBytesMax
        let residentMax = Double(early.residentBytes) * Self.growthMax + Double(purgeBytes)
        #expect(Double(last.residentBytes) <= residentMax)
        // Connections come and go with the faults; in the end some moment has no more of them than
        // the busiest moment of the first third.
        let third = resources.count / 3
        let descriptorsMax = resources[..<third].map(\.descriptors).max() ?? 0
        let descriptorsMin = resources.suffix(third).map(\.descriptors).min() ?? 0
        #expect(descriptorsMin <= descriptorsMax)
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
        _ pages: VersionedPages,
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
            pages.suspended("machine 2")
            proxy.stop()
            await pause(milliseconds: Int32.random(in: 300...4_000, using: &random))
            proxy.resume()
            pages.resumed("machine 2")
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
        var answer: (Int, [String: Any])?
        let isSettled = await eventually(seconds: 40) {
            answer = try? await proxies[0].purge(
                "/none",
                "Cache-Tag: none\r\nPurge-Wait: fleet\r\n"
            )
            return answer?.0 == 200 && answer?.1["applied"] as? Int == proxies.count
        }
        guard isSettled else {
            let logs = proxies.map { String($0.log.suffix(500)) }.joined(separator: "\n")
            throw WireFailure("The fleet does not settle: \(String(describing: answer))\n\(logs)")
        }
        var last = ""
        // Purges that no replica had are restored within moments.
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
final class FleetLoad: Sendable {
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
    func during(_ round: Int, exempt: Set<Int>, _ body: () async throws -> Void) async throws {
        isOver.store(false, ordering: .relaxed)
        try await withThrowingTaskGroup { group in
            for machine in ports.indices {
                group.addTask {
                    try await onThread { self.ask(machine, mayFail: exempt.contains(machine)) }
                }
            }
            group.addTask { await self.changePages(round) }
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

    /// Changes pages and purges them, by URL and by tag, at machines that are never killed.
    ///
    /// Half of the pages are purged once in many rounds, so that an old body of theirs would stay.
    private func changePages(_ round: Int) async {
        let half = VersionedPages.count / 2
        var page = half + round % half
        while !isOver.load(ordering: .relaxed) {
            let version = pages.change(page)
            let receipt = try? await purge(page, byTag: .random(), at: .random(in: 0...1))
            if let receipt {
                pages.purged(page, to: version, isReplicated: receipt > 0)
                purgeCount.add(1, ordering: .relaxed)
            }
            await pause(milliseconds: 10)
            page = .random(in: 0..<half)
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

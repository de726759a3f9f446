// Measures Foundation's URLCache, or the same class backed by the engine.
//
//     urlcache-peer urlcache|enginecache [DIRECTORY BODIES]
//
// The program reads one command a line and answers each with a line of JSON:
//
//     describe
//     http-hit keys=1024 size=1024 threads=1 milliseconds=200
//     disk-store size=4096 entries=1000
//     disk-hit size=4096 entries=1000 operations=500

import CacheEngineFoundation
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

let arguments = CommandLine.arguments
switch arguments.dropFirst().first {
case "urlcache", "enginecache":
    let isEngine = arguments[1] == "enginecache"
    let directory = arguments.count > 2 ? arguments[2] : nil
    let bodies = arguments.count > 3 ? URL(filePath: arguments[3]) : nil
    let peer = Peer(
        try await PeerCache.make(isEngine: isEngine, directory: directory),
        bodies: try bodies.map { try Data(contentsOf: $0) }
    )
    while let line = readLine() {
        print(peer.answer(line))
        fflush(nil)
    }
default:
    let usage = Array("usage: urlcache-peer urlcache|enginecache [DIRECTORY BODIES]\n".utf8)
    FileHandle.standardError.write(Data(usage))
    exit(2)
}

// swift-tools-version: 6.2
import Foundation
import PackageDescription

/// The proxy allocates with mimalloc if its headers are installed (decision 0086).
///
/// Test builds keep the system's allocator, which the sanitizers and the counts of allocations
/// replace.
let allocator: [LinkerSetting] =
    FileManager.default.fileExists(atPath: "/usr/include/mimalloc.h")
    ? [.linkedLibrary("mimalloc", .when(platforms: [.linux], configuration: .release))] : []

let house: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// No check for overlapping access at run time in the released proxy (decision 0060).
///
/// Test builds make the checks. No library may ask for such a flag, and none contains the target.
let withoutOverlapChecks: [SwiftSetting] = [
    .unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release))
]

let package = Package(
    name: "cache-engine",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "CacheEngine", targets: ["CacheEngine"]),
        .library(name: "CurlOrigin", targets: ["CurlOrigin"]),
        .library(name: "CacheEngineRedis", targets: ["CacheEngineRedis"]),
        .library(name: "CacheEngineFoundation", targets: ["CacheEngineFoundation"]),
        .library(name: "CacheTestSupport", targets: ["CacheTestSupport"]),
    ],
    targets: [
        // The system's LZ4, and the few things Swift cannot say.
        .systemLibrary(
            name: "CLZ4",
            pkgConfig: "liblz4",
            providers: [.apt(["liblz4-dev"]), .brew(["lz4"])]
        ),
        .target(name: "CEngineShims"),

        // Threads, clocks and the C library of the system.
        .systemLibrary(name: "CEpoll"),
        .target(name: "Platform", dependencies: ["CEpoll"], swiftSettings: house),

        // The rules of HTTP caching: pure values.
        .target(name: "HTTPCaching", swiftSettings: house),

        // The library. On Apple's platforms LZ4 comes from the system's Compression framework.
        .target(
            name: "CacheEngine",
            dependencies: [
                "HTTPCaching", .target(name: "CLZ4", condition: .when(platforms: [.linux])),
                "CEngineShims", "Platform",
            ],
            swiftSettings: house
        ),

        // An origin over the system's libcurl.
        .systemLibrary(
            name: "CCurl",
            pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]
        ),
        .target(
            name: "CurlOrigin",
            dependencies: ["CacheEngine", "HTTPCaching", "CCurl", "Platform"],
            swiftSettings: house
        ),

        // The URL loading system. Of the targets for users, this one alone imports Foundation.
        .target(
            name: "CacheEngineFoundation",
            dependencies: ["CacheEngine", "HTTPCaching", "Platform"],
            swiftSettings: house
        ),

        // The wire format of Redis: pure values.
        .target(name: "RESP", dependencies: ["Platform"], swiftSettings: house),
        .testTarget(
            name: "RESPTests",
            dependencies: ["RESP", "CacheTestSupport"],
            swiftSettings: house
        ),

        // A client of Redis: one server, a cluster, or the master that sentinels name.
        .target(name: "RedisClient", dependencies: ["RESP", "Platform"], swiftSettings: house),
        .target(
            name: "RedisTestSupport",
            dependencies: ["RedisClient", "RESP", "CacheTestSupport", "Platform"],
            path: "Tests/RedisTestSupport",
            swiftSettings: house
        ),
        .testTarget(
            name: "RedisClientTests",
            dependencies: [
                "RedisClient", "RedisTestSupport", "RESP", "CacheTestSupport", "Platform",
            ],
            swiftSettings: house
        ),

        // Several machines with one cache each: their purges travel through Redis.
        .target(
            name: "CacheEngineRedis",
            dependencies: ["CacheEngine", "RedisClient", "RESP", "Platform"],
            swiftSettings: house
        ),
        .testTarget(
            name: "CacheEngineRedisTests",
            dependencies: [
                "CacheEngineRedis", "CacheProxy", "CacheEngine", "RedisClient",
                "RedisTestSupport", "RESP", "Simulation", "CacheTestSupport", "Platform",
            ],
            swiftSettings: house
        ),

        // HTTP in, HTTP out: the engine as a server.
        .target(name: "CProxyShims"),
        .target(
            name: "CacheProxy",
            dependencies: [
                "CacheEngine", "CacheEngineRedis", "HTTPCaching", "CurlOrigin", "CProxyShims",
                "Platform",
            ],
            swiftSettings: house + withoutOverlapChecks
        ),
        .executableTarget(
            name: "cache-proxy",
            dependencies: ["CacheProxy", "Platform"],
            swiftSettings: house,
            linkerSettings: allocator
        ),
        .target(
            name: "CacheTestSupport",
            dependencies: ["CacheEngine", "Platform"],
            swiftSettings: house
        ),

        // Whole lives of a cache, each from one seed; and the tool that lives a million of them.
        .target(
            name: "Simulation",
            dependencies: [
                "CacheEngine", "CacheEngineRedis", "RedisClient", "RESP", "CacheTestSupport",
            ],
            swiftSettings: house
        ),
        .executableTarget(
            name: "simulate",
            dependencies: ["Simulation", "CacheTestSupport", "Platform"],
            swiftSettings: house
        ),
        .testTarget(
            name: "SimulationTests",
            dependencies: ["Simulation", "CacheEngine", "CacheTestSupport"],
            swiftSettings: house
        ),

        // Counts heap allocations; for tests and benchmarks only.
        .target(name: "CAllocationCounter"),

        .testTarget(
            name: "HTTPCachingTests",
            dependencies: ["HTTPCaching", "CAllocationCounter", "CacheTestSupport"],
            swiftSettings: house
        ),

        // How fast it is: the workloads, and the tool that runs them.
        .target(
            name: "Benchmarks",
            dependencies: [
                "CacheEngine", "CacheEngineRedis", "RedisClient", "RESP", "CacheTestSupport",
                "CAllocationCounter", "CLZ4", "Platform",
            ],
            swiftSettings: house
        ),
        .executableTarget(
            name: "bench-cli",
            dependencies: ["Benchmarks", "CacheEngine", "Platform"],
            swiftSettings: house
        ),
        .testTarget(
            name: "BenchmarksTests",
            dependencies: [
                "Benchmarks", "bench-cli", "CacheEngine", "CacheProxy", "CacheTestSupport",
                "Platform",
            ],
            swiftSettings: house
        ),

        .testTarget(
            name: "CacheEngineTests",
            dependencies: [
                "CacheEngine", "HTTPCaching", "CacheTestSupport", "CAllocationCounter", "Platform",
                "offline-client", "only-when-changed", "never-changes",
            ],
            swiftSettings: house
        ),
        .testTarget(
            name: "CurlOriginTests",
            dependencies: [
                "CurlOrigin", "CacheProxy", "CacheEngine", "CacheTestSupport", "Platform",
            ],
            swiftSettings: house
        ),
        .testTarget(
            name: "CacheEngineFoundationTests",
            dependencies: ["CacheEngineFoundation", "CacheEngine", "CacheTestSupport"],
            swiftSettings: house
        ),

        // Small complete programs, and the tests that run them.
        .executableTarget(
            name: "urlsession-program",
            dependencies: ["CacheEngine", "CacheEngineFoundation"],
            path: "Examples/URLSessionProgram",
            swiftSettings: house
        ),
        .executableTarget(
            name: "getting-started",
            dependencies: ["CacheEngine", "CurlOrigin"],
            path: "Examples/GettingStarted",
            swiftSettings: house
        ),
        .executableTarget(
            name: "server-loop",
            dependencies: ["CacheEngine", "CurlOrigin"],
            path: "Examples/ServerLoop",
            swiftSettings: house
        ),
        // The part of the adapters that needs no package from the network.
        .target(
            name: "GatewayRules",
            dependencies: ["CacheEngine"],
            path: "Adapters/Sources/NIOBridge",
            exclude: ["BufferBody.swift", "EndableBody.swift"],
            swiftSettings: house
        ),
        .testTarget(
            name: "ExamplesTests",
            dependencies: [
                "getting-started", "urlsession-program", "server-loop", "offline-client",
                "only-when-changed", "never-changes", "Snippets", "GatewayRules",
                "CacheTestSupport",
            ],
            swiftSettings: house
        ),

        // Foundation's own cache as a peer in measurements.
        .executableTarget(
            name: "urlcache-peer",
            dependencies: ["CacheEngine", "CacheEngineFoundation"],
            swiftSettings: house
        ),
        // The code that the documents show.
        .target(
            name: "Snippets",
            dependencies: [
                "CacheEngine", "CacheEngineFoundation", "CacheEngineRedis", "CurlOrigin",
            ],
            path: "Examples/Snippets",
            swiftSettings: house
        ),
        .testTarget(
            name: "CacheProxyTests",
            dependencies: [
                "CacheProxy", "cache-proxy", "CacheEngine", "CacheEngineRedis", "HTTPCaching",
                "CurlOrigin", "RedisTestSupport", "CacheTestSupport", "Platform",
            ],
            swiftSettings: house
        ),

        // The process that the crash test kills.
        .executableTarget(
            name: "crash-child",
            dependencies: ["CacheEngine", "CacheTestSupport", "Platform"],
            swiftSettings: house
        ),
        .testTarget(
            name: "CrashTests",
            dependencies: ["CacheEngine", "CacheTestSupport", "crash-child"],
            swiftSettings: house
        ),
        .testTarget(
            name: "TidyTests",
            dependencies: ["bench-cli", "cache-proxy"],
            swiftSettings: house
        ),

        // Small complete programs: the three uses of a download cache.
        .executableTarget(
            name: "offline-client",
            dependencies: ["CacheEngine", "CurlOrigin"],
            path: "Examples/Offline",
            swiftSettings: house
        ),
        .executableTarget(
            name: "only-when-changed",
            dependencies: ["CacheEngine"],
            path: "Examples/OnlyWhenChanged",
            swiftSettings: house
        ),
        .executableTarget(
            name: "never-changes",
            dependencies: ["CacheEngine"],
            path: "Examples/NeverChanges",
            swiftSettings: house
        ),
    ]
)

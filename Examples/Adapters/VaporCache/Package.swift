// swift-tools-version: 6.2
import PackageDescription

// `make check` does not build this package, because its dependencies come from the network.
let package = Package(
    name: "vapor-cache",
    platforms: [.macOS(.v15)],
    products: [.library(name: "VaporCache", targets: ["VaporCache"])],
    dependencies: [
        .package(name: "cache-engine", path: "../../.."),
        .package(path: "../AsyncHTTPClientOrigin"),
        .package(path: "../NIOBridge"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.80.0"),
        .package(url: "https://github.com/vapor/vapor.git", from: "4.110.0"),
    ],
    targets: [
        .target(
            name: "VaporCache",
            dependencies: [
                "NIOBridge",
                .product(name: "CacheEngine", package: "cache-engine"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "Vapor", package: "vapor"),
            ]
        ),
        .executableTarget(
            name: "vapor-gateway",
            dependencies: [
                "AsyncHTTPClientOrigin", "VaporCache",
                .product(name: "CacheEngine", package: "cache-engine"),
                .product(name: "Vapor", package: "vapor"),
            ]
        ),
    ]
)

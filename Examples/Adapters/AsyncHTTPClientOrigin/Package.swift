// swift-tools-version: 6.2
import PackageDescription

// `make check` does not build this package, because its dependencies come from the network.
let package = Package(
    name: "async-http-client-origin",
    platforms: [.macOS(.v15)],
    products: [.library(name: "AsyncHTTPClientOrigin", targets: ["AsyncHTTPClientOrigin"])],
    dependencies: [
        .package(name: "cache-engine", path: "../../.."),
        .package(path: "../NIOBridge"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.80.0"),
        .package(url: "https://github.com/swift-server/async-http-client.git", from: "1.25.0"),
    ],
    targets: [
        .target(
            name: "AsyncHTTPClientOrigin",
            dependencies: [
                "NIOBridge",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "CacheEngine", package: "cache-engine"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ]
        )
    ]
)

import CacheProxy

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

exit(await ProxyProgram.run(Array(CommandLine.arguments.dropFirst())))

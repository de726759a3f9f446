import CacheProxy
import Platform

exit(await ProxyProgram.run(Array(CommandLine.arguments.dropFirst())))

/// The machine that the process runs on.
package enum Machine {
    /// The number of processors in use, at least one.
    package static var processorCount: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    /// The bytes of a page of memory.
    package static var pageBytes: Int { sysconf(Int32(_SC_PAGESIZE)) }

    /// The identity of the time since the system was started; `nil` if the system does not tell.
    package static let bootID: String? = {
        #if canImport(Darwin)
            var bytes = [CChar](repeating: 0, count: 64)
            var count = bytes.count - 1
            guard sysctlbyname("kern.bootsessionuuid", &bytes, &count, nil, 0) == 0 else {
                return nil
            }
        #else
            guard let file = fopen("/proc/sys/kernel/random/boot_id", "re") else { return nil }
            defer { fclose(file) }
            var bytes = [CChar](repeating: 0, count: 64)
            guard fgets(&bytes, Int32(bytes.count), file) != nil else { return nil }
        #endif
        let letters = bytes.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }
        return letters.isEmpty ? nil : String(decoding: letters, as: UTF8.self)
    }()

    /// The bytes of memory.
    package static var memoryBytes: Int { sysconf(Int32(_SC_PHYS_PAGES)) * pageBytes }

    /// The number of files that the process may open.
    package static var openFilesMax: Int {
        openFilesLimit.map { Int(clamping: $0.rlim_cur) } ?? .max
    }

    /// Raises the number of files that the process may open as far as the system allows, and returns
    /// it.
    package static func raiseOpenFilesMax() -> Int {
        guard var limit = openFilesLimit else { return .max }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(openFiles, &limit)
        return openFilesMax
    }

    private static var openFilesLimit: rlimit? {
        var limit = rlimit()
        return getrlimit(openFiles, &limit) == 0 ? limit : nil
    }

    #if canImport(Glibc)
        private static let openFiles = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
        private static let openFiles = RLIMIT_NOFILE
    #endif
}

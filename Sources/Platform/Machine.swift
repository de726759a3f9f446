/// The machine that the process runs on.
package enum Machine {
    /// The number of processors in use, at least one.
    package static var processorCount: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    /// The bytes of a page of memory.
    package static var pageBytes: Int { sysconf(Int32(_SC_PAGESIZE)) }

    /// The bytes of memory.
    package static var memoryBytes: Int { sysconf(Int32(_SC_PHYS_PAGES)) * pageBytes }
}

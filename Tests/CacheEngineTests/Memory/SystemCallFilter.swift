#if os(Linux)
    import Platform

    /// A filter of the calling thread's system calls (seccomp).
    enum SystemCallFilter {
        /// `prctl` as a function with a fixed number of arguments: Swift calls no other.
        private typealias Control =
            @convention(c) (CInt, CUnsignedLong, UnsafeRawPointer?, CUnsignedLong, CUnsignedLong) ->
            CInt

        /// The system's `struct sock_fprog`.
        private struct Program {
            let count: UInt16
            let steps: UnsafePointer<UInt64>?
        }

        /// Refuses `membarrier` with EPERM from now on; returns `false` if no filter is permitted.
        static func refuseMembarrier() -> Bool {
            #if arch(x86_64)
                let number: UInt64 = 324
            #else
                let number: UInt64 = 283
            #endif
            // The system's `struct sock_filter`: the code in 16 bits, two jumps of 8 bits, the operand.
            let steps: [UInt64] = [
                0x20,  // load the number of the call
                0x15 | 1 << 24 | number << 32,  // another number: one step further
                0x06 | 0x0005_0001 << 32,  // EPERM
                0x06 | 0x7FFF_0000 << 32,  // permit
            ]
            guard let symbol = dlsym(nil, "prctl") else { return false }
            let control = unsafeBitCast(symbol, to: Control.self)
            return steps.withUnsafeBufferPointer { steps in
                let program = Program(count: UInt16(steps.count), steps: steps.baseAddress)
                // 38: no new privileges, which a filter requires. 22: a filter (2).
                return withUnsafePointer(to: program) { program in
                    control(38, 1, nil, 0, 0) == 0 && control(22, 2, program, 0, 0) == 0
                }
            }
        }
    }
#endif

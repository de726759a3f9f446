package import Platform

/// Programs that a test starts, with no descriptor of the test's process.
///
/// A server that inherits the end of a pipe or of a connection keeps it open: the other end then waits
/// until the server ends.
package enum ChildProgram {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// Closes what the shell has inherited, and becomes the program.
    ///
    /// A list in the call would miss descriptors that other threads open meanwhile.
    private static let becoming = """
        for n in /dev/fd/*; do n=${n##*/}; [ $n -le LAST ] || eval "exec $n>&-"; done; exec env "$@"
        """

    /// Starts a program by its path.
    ///
    /// `variables` of the environment, each `name=value`, are added to those of this process. What the
    /// program prints goes to the file `output`, or where this process prints. The program gets
    /// `inherited` as its descriptor 3.
    package static func start(
        _ program: String,
        _ arguments: [String],
        variables: [String] = [],
        output: String? = nil,
        inherited: Int32? = nil
    ) throws -> pid_t {
        guard access(program, X_OK) == 0 else {
            throw Failure(description: "\(program) cannot be executed: errno \(errno)")
        }
        #if canImport(Darwin)
            var actions: posix_spawn_file_actions_t?
        #else
            var actions = posix_spawn_file_actions_t()
        #endif
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        if let output {
            let flags = O_WRONLY | O_CREAT | O_TRUNC
            posix_spawn_file_actions_addopen(&actions, 1, output, flags, 0o600)
            posix_spawn_file_actions_adddup2(&actions, 1, 2)
        }
        if let inherited {
            // Via another number: a descriptor duplicated onto itself would stay closed on exec.
            posix_spawn_file_actions_adddup2(&actions, inherited, 1000)
            posix_spawn_file_actions_adddup2(&actions, 1000, 3)
        }
        let line = becoming.replacing("LAST", with: inherited == nil ? "2" : "3")
        let command = ["bash", "-c", line, "bash"] + variables + [program] + arguments
        var words = command.map { strdup($0) } + [nil]
        defer { words.forEach { free($0) } }
        var process: pid_t = 0
        let code = posix_spawn(&process, "/bin/bash", &actions, nil, &words, environ)
        guard code == 0 else { throw Failure(description: "\(program) did not start: \(code)") }
        return process
    }

    /// Waits for the end of a program, and returns its status.
    @discardableResult
    package static func wait(for process: pid_t) -> Int32 {
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status
    }
}

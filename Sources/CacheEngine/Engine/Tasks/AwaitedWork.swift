/// Work that a blocked thread waits for.
///
/// Blocked threads may be all of an executor's, so this work needs one that no caller can block.
package enum AwaitedWork {
    /// The executor of this work and of the tasks that it begins; `nil` for all other work.
    @TaskLocal package static var executor: (any TaskExecutor)?
}

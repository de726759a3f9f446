/// The progress of several replays of one trace: each is the same share of the work.
struct ReplayProgress {
    private let replayCount: Int
    private var line: Terminal.ProgressLine
    private var policy = ""
    private var begun = 0
    private var percentShown = -1

    init(replayCount: Int, line: Terminal.ProgressLine = .init()) {
        self.replayCount = replayCount
        self.line = line
    }

    /// Begins the next replay.
    mutating func begin(_ policy: String) {
        self.policy = policy
        begun += 1
        percentShown = -1
        show(0)
    }

    /// Shows how much of the current replay is done.
    mutating func show(_ share: Double) {
        let percent = Int((Double(begun - 1) + share) * 100 / Double(replayCount))
        guard percent != percentShown else { return }
        percentShown = percent
        line.show("replaying with \(policy)", percent: percent)
    }

    mutating func clear() { line.clear() }
}

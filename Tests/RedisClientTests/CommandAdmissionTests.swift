import Testing

@testable import RedisClient

@Suite struct CommandAdmissionTests {
    private func admission(countMax: Int, bytesMax: Int = 1 << 20) -> CommandAdmission {
        var options = RedisOptions()
        options.outstandingCountMax = countMax
        options.outstandingBytesMax = bytesMax
        return CommandAdmission(NodeAddress(7), options)
    }

    @Test func commandsBeyondTheLimitAreRefusedAndCounted() {
        var admission = admission(countMax: 5)
        let batch = Batch("a", count: 2)
        #expect(admission.admit(batch) == nil)
        #expect(admission.admit(batch) == nil)
        let refusal = admission.admit(batch)
        #expect(refusal?.code == .overloaded)
        #expect(admission.counts.refusedByLimits == 2)
        #expect(admission.count == 4 && admission.bytes == 2 * batch.bytes.count)
        admission.release(.init(batch: batch, outcome: .success([])))
        #expect(admission.admit(batch) == nil)
        #expect(admission.counts.replies == 2)
    }

    @Test func bytesBeyondTheLimitAreRefused() {
        let batch = Batch("a")
        var admission = admission(countMax: 9, bytesMax: 2 * batch.bytes.count)
        #expect(admission.admit(batch) == nil)
        #expect(admission.admit(batch) == nil)
        let refusal = admission.admit(batch)
        #expect(refusal?.code == .overloaded)
    }

    @Test func suspendedServerRefusesEverything() {
        var admission = admission(countMax: 9)
        admission.suspension = RedisError(.timedOut, detail: "late")
        let error = admission.admit(Batch("a", count: 3))
        #expect(error?.code == .suspended)
        #expect(error?.detail.hasSuffix("late") == true)
        #expect(admission.counts.refusedByBreaker == 3 && admission.count == 0)
    }
}

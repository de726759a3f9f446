import HTTPCaching
import Synchronization

/// The store of one response that a fetch has left to its callers (`RequestOptions.leavesStoring`).
///
/// It holds what the fetch knows and the callers do not, so that the response is stored as the
/// fetch itself would have stored it. Every caller that the store is left to has it, and the first
/// that has the whole body takes it: the caller whose request was sent may be cancelled.
package final class PendingStore: Sendable {
    private let response: ReceivedResponse
    /// The key under which the fetch itself would have stored the response.
    let key: RequestKey
    /// The class that the request's policy or the cache gives the entry.
    let storageClass: StorageClass
    /// Taken before the fetch: a removal after it keeps the response from being stored.
    let ticket: RemovalLedger.Ticket
    private let isTaken = Atomic(false)

    init(
        _ response: ReceivedResponse,
        _ storageClass: StorageClass,
        under key: RequestKey,
        since ticket: RemovalLedger.Ticket
    ) {
        self.response = response
        self.key = key
        self.storageClass = storageClass
        self.ticket = ticket
    }

    /// Takes the store for a caller that has the whole body.
    ///
    /// - Returns: `false` if another caller has taken it.
    package func take() -> Bool {
        !isTaken.exchange(true, ordering: .relaxed) || Mutant.leavesAStoreToAll.isOn
    }

    /// Whether the response ends the stored one also if it is not stored itself.
    ///
    /// An error does not, nor does a response that a newer one has overtaken, or whose flight has
    /// given its key to a newer one.
    var endsReplaced: Bool {
        let isNewest = ticket.isPermitted && ticket.arrival?.isOutdated != true
        return StatusFacts(response.facts.status).tellsOfTheResource
            && (isNewest || Mutant.endsNewerByRefusal.isOn)
    }

    /// The fields of the origin's response.
    package var fields: HeaderFields { HeaderFields(response.fields) }

    /// The response as the rules of storing see it, with the status and the fields that the caller
    /// gives it.
    func received(status: Int, fields: FieldSection) -> ReceivedResponse {
        ReceivedResponse(
            status: status,
            fields: fields,
            to: response.request,
            rules: response.rules,
            requestSeconds: response.requestSeconds,
            responseSeconds: response.responseSeconds
        )
    }
}

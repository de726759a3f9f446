import HTTPCaching

/// The store of one response that a fetch has left to its caller (`RequestOptions.leavesStoring`).
///
/// It holds what the fetch knows and the caller does not, so that the response is stored as the
/// fetch itself would have stored it.
package final class PendingStore: Sendable {
    private let response: ReceivedResponse
    /// The class that the request's policy or the cache gives the entry.
    let storageClass: StorageClass
    /// Taken before the fetch: a removal after it keeps the response from being stored.
    let ticket: RemovalLedger.Ticket

    init(
        _ response: ReceivedResponse,
        _ storageClass: StorageClass,
        since ticket: RemovalLedger.Ticket
    ) {
        self.response = response
        self.storageClass = storageClass
        self.ticket = ticket
    }

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

import HTTPCaching

/// Values that are lists.
extension ConfigurationValue {
    /// The members between commas, without the spaces around them; empty ones count.
    static func items(of text: String) -> [Substring] {
        text.split(separator: ",", omittingEmptySubsequences: false).map { item in
            var item = item
            while item.first == " " { item.removeFirst() }
            while item.last == " " { item.removeLast() }
            return item
        }
    }

    /// The names between commas, each given once, as `read` understands them.
    static func names<Name: Equatable>(
        in text: String,
        atMost countMax: Int,
        _ read: (Substring) throws(ValueFault) -> Name
    ) throws(ValueFault) -> [Name] {
        var names: [Name] = []
        for item in items(of: text) {
            let name = try read(item)
            guard !names.contains(name) else {
                throw ValueFault("`\(item)` is given twice", give: "it once")
            }
            names.append(name)
        }
        guard names.count <= countMax else {
            throw ValueFault("the list has \(names.count) names", give: "at most \(countMax)")
        }
        return names
    }

    /// The lifetimes of responses without one, by status: `200=60,404=10`.
    static func lifetimes(_ text: String) throws(ValueFault) -> [Int: Duration] {
        var lifetimes: [Int: Duration] = [:]
        for item in items(of: text) {
            let parts = item.split(separator: "=", omittingEmptySubsequences: false)
            guard parts.count == 2 else {
                throw ValueFault(
                    "`\(item)` is not the lifetime of a status",
                    give: "STATUS=SECONDS, as 404=10"
                )
            }
            let status = try storedStatus(parts[0])
            guard lifetimes[status] == nil else {
                throw ValueFault("the status \(status) is given twice", give: "it once")
            }
            lifetimes[status] = try wholeSeconds(String(parts[1]))
        }
        return lifetimes
    }

    private static func storedStatus(_ text: Substring) throws(ValueFault) -> Int {
        guard text.utf8.count == 3, text.utf8.allSatisfy(ByteClass.isDigit),
            let status = Int(text), (200...599).contains(status)
        else {
            throw ValueFault("`\(text)` is not the status of a final response", give: "200 to 599")
        }
        guard !StatusFacts(status).isNeverStored else {
            throw ValueFault(
                "a response with the status \(status) is never stored",
                give: "another status"
            )
        }
        return status
    }
}

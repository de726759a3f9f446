import HTTPCaching

/// Builds every entry: encodes the facts and fields of a response as the bytes that are kept.
///
///     ReceivedResponse ─▶ lifetime ─▶ fields, StoredFacts ─▶ metadata ─▶ EntryBlueprint ─▶ Entry
///
/// A value. A step may change a part (tags, class, place) before it reads the blueprint;
/// `TieredStore` makes the entry, as it knows the entry's place in the order of soft purges.
struct EntryBuilder: Sendable {
    var key: RequestKey
    private(set) var facts: StoredFacts
    private(set) var fields: FieldSection
    /// The lifetime that the application gave, instead of the one that the fields give.
    private var ownLifetimeSeconds: UInt32?
    var userInfo: ByteChunk?
    /// The parts that the body holds; `nil` if it is whole.
    private var parts: PartialBody?
    var tags = TagList()
    var storageClass = StorageClass.permanent
    var place = StoragePlace.everywhere
    private let createdSeconds: Int64

    /// The entry of a response that was received and is stored with `lifetime`.
    init(_ response: ReceivedResponse, lifetime: FreshnessLifetime, under key: RequestKey) {
        self.key = key
        facts = response.storedFacts(lifetime)
        fields = response.storedFields
        createdSeconds = response.responseSeconds
    }

    /// The entry of a stored response with new facts, and with new fields if they are given.
    init(renewing stored: StoredResponse, facts: StoredFacts, fields: FieldSection? = nil) {
        let old = EntryBlueprint(stored.entry, metadata: [])
        key = old.key
        self.facts = facts
        self.fields = fields ?? stored.fields()
        ownLifetimeSeconds = stored.ownLifetimeSeconds
        userInfo = stored.userInfo
        parts = stored.parts
        tags = old.tags
        storageClass = old.storageClass
        place = old.place
        createdSeconds = old.createdSeconds
    }

    /// The blueprint of an index of variants.
    static func blueprint(
        _ index: VariantIndex,
        _ roll: VariantRoll,
        under key: RequestKey,
        isPinned: Bool,
        nowSeconds: Int64
    ) -> EntryBlueprint {
        EntryBlueprint(
            key: key,
            metadata: index.metadata(roll),
            storageClass: isPinned ? .pinned : .permanent,
            isIndex: true,
            createdSeconds: nowSeconds
        )
    }

    /// The entry without its body.
    var blueprint: EntryBlueprint {
        EntryBlueprint(
            key: key,
            metadata: StoredResponse.metadata(
                facts: facts,
                fields: fields,
                userInfo: userInfo,
                ownLifetimeSeconds: ownLifetimeSeconds,
                parts: parts
            ),
            tags: tags,
            storageClass: storageClass,
            place: place,
            createdSeconds: createdSeconds
        )
    }

    // MARK: Changes

    /// Applies the changes of the application's hook.
    ///
    /// A lifetime that differs from the origin's is the application's own, and also holds after
    /// each 304.
    mutating func apply(_ proposal: StoreProposal) {
        let lifetimeSeconds = Self.lifetimeSeconds(proposal.lifetime.wholeSeconds)
        if lifetimeSeconds != facts.freshnessLifetimeSeconds { setOwnLifetime(lifetimeSeconds) }
        fields = proposal.fields.section
        userInfo = proposal.userInfo
        tags = TagList(proposal.tags) ?? TagList()
        storageClass = proposal.storageClass
        place = proposal.place
    }

    /// Gives the entry the application's own lifetime.
    mutating func setOwnLifetime(_ seconds: UInt32) {
        ownLifetimeSeconds = seconds
        facts.freshnessLifetimeSeconds = seconds
    }

    /// Removes a field from those that are kept.
    mutating func omit(lowercased name: StaticString) { fields.remove(lowercased: name) }

    /// Lets the fields of a whole body state its length, if they state another one.
    mutating func correctLength(to count: Int) {
        guard parts == nil, let stated = fields.combined("Content-Length"),
            stated != String(count), !Mutant.keepsAFalseLength.isOn
        else { return }
        fields.set("Content-Length", String(count))
    }

    /// Joins a stored part of the same version, whose bytes the entry holds too from then on.
    ///
    /// The new fields replace the old ones; fields that the directives of both name are left out.
    /// The entry is found by the tags of both, stays in memory if one of them must, and has the
    /// class of the stored part and its user info, unless the new part has some.
    ///
    /// `response` has the fields of both, and is stored with `lifetime`: a directive or a validator
    /// that the new part lacks stays in force. Its age is that of the new part.
    ///
    /// - Returns: `false`, without a change, if the tags of both do not fit into one entry.
    mutating func join(
        _ stored: StoredResponse,
        as response: ReceivedResponse,
        lifetime: FreshnessLifetime
    ) -> Bool {
        let old = EntryBlueprint(stored.entry, metadata: [])
        let own = tags.tags
        let others = TagList.tags(old.tags.tags, without: own)
        guard let union = TagList(Mutant.forgetsTagsOfParts.isOn ? own : own + others) else {
            return false
        }
        fields = StoredFields.make(
            from: PartialBody.joinedFields(stored: stored.fields(), new: fields),
            response: response.facts,
            rules: response.rules,
            receivedAtSeconds: createdSeconds
        )
        let ageSeconds = facts.correctedInitialAgeSeconds
        facts = response.storedFacts(lifetime)
        facts.correctedInitialAgeSeconds = ageSeconds
        if let ownLifetimeSeconds { facts.freshnessLifetimeSeconds = ownLifetimeSeconds }
        tags = union
        storageClass = old.storageClass
        if old.place == .memoryOnly { place = .memoryOnly }
        userInfo = userInfo ?? stored.userInfo
        return true
    }

    /// Sets the parts of the representation that the body holds.
    ///
    /// Once they cover the whole, facts and fields describe a complete response (RFC 9111 §3.4).
    mutating func hold(_ held: PartialBody) {
        guard held.isComplete else { return parts = held }
        parts = nil
        facts.status = 200
        facts.flags.remove(.isPartial)
        fields.remove("Content-Range")
        fields.set("Content-Length", String(held.heldBytes))
    }

    /// A lifetime in seconds, as entries encode it.
    static func lifetimeSeconds(_ seconds: Int) -> UInt32 {
        UInt32(min(max(0, seconds), Int(Int32.max)))
    }
}

/// The contents of an entry except its body.
struct EntryBlueprint: Sendable {
    var key: RequestKey
    var metadata: [UInt8]
    var tags = TagList()
    var storageClass = StorageClass.permanent
    var place = StoragePlace.everywhere
    var isIndex = false
    var createdSeconds: Int64

    func head(bodyCount: Int, sequence: UInt64) -> EntryHead {
        var flags: EntryHead.Flags = []
        if storageClass == .session { flags.insert(.session) }
        if storageClass == .pinned { flags.insert(.pinned) }
        if place == .memoryOnly { flags.insert(.memoryOnly) }
        if isIndex { flags.insert(.index) }
        var head = EntryHead(
            hash: key.hash,
            createdSeconds: EntryHead.seconds(createdSeconds),
            flags: flags,
            keyCount: key.bytes.count,
            tagsCount: tags.bytes.count,
            metadataCount: metadata.count,
            bodyCount: bodyCount
        )
        head.sequence = sequence
        return head
    }

    /// Whether an entry's head can state the sizes of the parts and of a body of that size.
    func isEncodable(bodyCount: Int) -> Bool {
        key.bytes.count <= EntryHead.keyCountMax && metadata.count <= EntryHead.metadataCountMax
            && bodyCount <= EntryHead.bodyCountMax
    }

    /// The entry with the bytes of `pieces` as its body, and its place in the order of soft purges.
    func makeEntry(body pieces: some Collection<ByteChunk>, sequence: UInt64) -> Entry {
        Entry(
            head: head(bodyCount: pieces.byteCount, sequence: sequence),
            key: key.bytes,
            tags: tags,
            metadata: metadata
        ) { pieces.copy(to: $0) }
    }
}

extension EntryBlueprint {
    /// The blueprint of an existing entry, with new metadata.
    init(_ entry: Entry, metadata: [UInt8]) {
        let head = entry.head
        self.init(
            key: RequestKey(StoredEntry(entry).key),
            metadata: metadata,
            tags: entry.withTags { TagList(encoded: $0) },
            storageClass: head.storageClass,
            place: head.isMemoryOnly ? .memoryOnly : .everywhere,
            isIndex: head.flags.contains(.index),
            createdSeconds: Int64(head.createdSeconds)
        )
    }
}

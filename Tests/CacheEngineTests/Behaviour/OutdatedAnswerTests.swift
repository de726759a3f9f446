import CacheEngine
import CacheTestSupport
import Testing

/// A replaced response is not served again; an error or a HEAD without a validator changes no
/// entry.
@Suite struct OutdatedAnswerTests {
    @Test("A response that may not be stored ends the life of the one that a reload passed over")
    func reloadAnsweredNoStoreEndsTheOldAnswer() async throws {
        let reloads: [(HeaderFields, CachePolicy)] = [
            ([:], .reload),
            ([:], .revalidate),
            (["Cache-Control": "no-store"], .standard),
            (["Cache-Control": "no-cache"], .standard),
            (["Cache-Control": "no-store"], .reload),
        ]
        for vary in [nil, "X-A"] as [String?] {
            for status in [200, 301, 404, 410] {
                for (wish, policy) in reloads {
                    let old = Resource(["Cache-Control": "max-age=600"])
                    if let vary {
                        old.change(fields: ["Cache-Control": "max-age=600", "Vary": vary])
                    }
                    let stage = try await Stage(old)
                    _ = try await stage.get()
                    _ = try await stage.get(Stage.url, ["X-A": "other"])
                    stage.origin.follow { _, _ in
                        .whole(status: status, fields: ["Cache-Control": "no-store"], body: "two")
                    }
                    #expect(try await stage.get(Stage.url, wish, policy: policy).body == "two")
                    let next = try await stage.get()
                    #expect(next.source == .origin, "\(wish.pairs) \(policy) \(status)")
                    #expect(next.body == "two")
                    if vary != nil {
                        let other = try await stage.get(Stage.url, ["X-A": "other"])
                        #expect(other.source == .fresh, "Another variant says nothing of this one")
                    }
                    await stage.end()
                }
            }
        }
    }

    @Test("A request with no-store ends a stored response only if it was told of another version")
    func noStoreEndsOnlyWhatHasChanged() async throws {
        for isChanged in [false, true] {
            let resource = Resource()
            let stage = try await Stage(resource)
            _ = try await stage.get()
            if isChanged { resource.change(body: "two", tag: "\"2\"") }
            _ = try await stage.get(Stage.url, ["Cache-Control": "no-store"])
            #expect(try await stage.get().source == (isChanged ? .origin : .fresh))
            await stage.end()
        }
    }

    @Test("A response that is not kept, for whatever reason, ends the one that it replaces")
    func unkeptResponseRemovesTheOldEntry() async throws {
        for reason in ["hook", "tags", "size"] {
            let stage = try await Stage(Resource(["Cache-Control": "max-age=600"])) {
                $0.memory = .init(capacity: .megabytes(4))
                $0.hooks.willStore = { $0.fields.contains("X-Refused") ? nil : $0 }
            }
            _ = try await stage.get()
            stage.origin.follow { _, _ in
                let body = String(repeating: "two", count: reason == "size" ? 1_000_000 : 1)
                return .whole(fields: Self.fields(refusedFor: reason), body: body)
            }
            let reload = try await stage.get(policy: .reload)
            #expect(reload.body.hasPrefix("two"))
            #expect(try await stage.get().body.hasPrefix("two"), "\(reason)")
            await stage.end()
        }
    }

    @Test("An error that is not kept, for whatever reason, leaves what is stored")
    func unkeptErrorLeavesTheOldAnswer() async throws {
        for reason in ["hook", "tags", "size"] {
            for status in [400, 403, 404, 410, 500, 503] {
                for policy in [CachePolicy.standard, .reload] {
                    let stage = try await Stage(Resource()) {
                        $0.memory = .init(capacity: .megabytes(4))
                        $0.hooks.willStore = { $0.fields.contains("X-Refused") ? nil : $0 }
                    }
                    _ = try await stage.get()
                    stage.clock.advance(seconds: 61)
                    stage.origin.follow { _, _ in
                        .whole(
                            status: status,
                            fields: Self.fields(refusedFor: reason),
                            body: String(repeating: "no", count: reason == "size" ? 1_000_000 : 1)
                        )
                    }
                    #expect(try await stage.get(policy: policy).status == status)
                    let isKept = try await stage.holds()
                    let isGone = status == 404 || status == 410
                    #expect(isKept != isGone, "\(reason) \(status) \(policy)")
                    await stage.end()
                }
            }
        }
    }

    /// The fields of a response that is not kept for that reason.
    private static func fields(refusedFor reason: String) -> HeaderFields {
        var fields: HeaderFields = ["Cache-Control": "max-age=5"]
        switch reason {
        case "hook": fields["X-Refused"] = "yes"
        case "tags": fields["Cache-Tag"] = (0..<300).map { "t\($0)" }.joined(separator: ",")
        default: break
        }
        return fields
    }

    private static let timelessErrors: [HeaderFields] = [
        [:], ["Cache-Control": "no-store"], ["Cache-Control": "max-age=0", "ETag": "\"2\""],
        ["Cache-Control": "private"], ["Expires": "0"],
    ]

    @Test(
        "An error that states no time leaves what is stored, in either mode, whatever the policy",
        arguments: [HTTPCache.Configuration.Mode.shared, .private]
    )
    func errorLeavesTheOldAnswer(mode: HTTPCache.Configuration.Mode) async throws {
        let policies = [
            CachePolicy.reload, .revalidate, CachePolicy(lifetimeOverride: .seconds(86_400)),
            CachePolicy(
                lifetimeOverride: .seconds(86_400),
                respectsOriginDirectives: false
            ),
        ]
        for status in [400, 401, 403, 500, 503] {
            for fields in Self.timelessErrors {
                for policy in policies {
                    let stage = try await Stage(Resource()) { $0.mode = mode }
                    _ = try await stage.get()
                    stage.clock.advance(seconds: 61)
                    stage.origin.follow { _, _ in
                        .whole(status: status, fields: fields, body: "no")
                    }
                    #expect(try await stage.get(policy: policy).status == status)
                    let kept = try await stage.get(policy: .cacheOnly)
                    #expect(kept.body == "one", "\(status) \(fields.pairs) \(policy)")
                    await stage.end()
                }
            }
        }
    }

    @Test("A response to HEAD without the validator of what is stored freshens nothing")
    func headWithoutValidatorsFreshensNothing() async throws {
        let stage = try await Stage(Resource())
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        stage.origin.follow { _, _ in
            OriginResponse(status: 200, fields: ["Cache-Control": "max-age=60"])
        }
        let head = try await stage.get(method: .head)
        #expect(head.status == 200)
        #expect(head.source == .origin)
        #expect(try await stage.holds(), "Nor does it end its life")
        let resource = Resource()
        stage.origin.follow { request, _ in resource.answer(request) }
        #expect(try await stage.get().source == .revalidated)
        await stage.end()
    }
}

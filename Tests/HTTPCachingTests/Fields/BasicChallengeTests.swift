import HTTPCaching
import Testing

@Suite("Challenges of the scheme Basic, RFC 7617 and RFC 9110 §11")
struct BasicChallengeTests {
    @Test(arguments: [
        (["Basic realm=\"here\""], "here"), (["basic REALM=\"here\""], "here"),
        (["Basic realm=here"], "here"), (["Basic realm = \"here\""], "here"),
        (["Basic realm=\"say \\\"x\\\"\""], "say \"x\""), (["Basic realm=\"\""], ""),
        (["Basic realm=\"a, b\""], "a, b"), (["Basic realm=\"open"], "open"),
        (["Negotiate", "Basic realm=\"here\""], "here"),
        (["Negotiate, Basic realm=\"here\""], "here"),
        (["Negotiate YWJj==, Basic realm=\"here\""], "here"),
        (["Digest realm=\"d\", nonce=\"n\", Basic realm=\"here\""], "here"),
        (["Basic charset=\"UTF-8\", realm=\"here\""], "here"),
        (["Basic charset=\"UTF-8\"", "realm=\"here\""], "here"),
        (["Basic realm=\"here\", Basic realm=\"there\""], "here"),
    ])
    func realm(_ lines: [String], _ expected: String) {
        #expect(BasicChallenge(in: lines)?.realm == expected, "\(lines)")
    }

    @Test(arguments: [
        ["Basic"], ["Basic charset=\"UTF-8\""], ["Basic, Digest realm=\"d\""],
    ])
    func withoutARealm(_ lines: [String]) {
        #expect(BasicChallenge(in: lines) != nil && BasicChallenge(in: lines)?.realm == nil)
    }

    @Test(arguments: [
        [], [""], ["Negotiate"], ["Digest realm=\"Basic realm=x\""], ["Basically realm=\"x\""],
        ["Digest realm=\"d\", basic=\"x\""], ["=, ,\"Basic realm=x\""],
    ])
    func none(_ lines: [String]) { #expect(BasicChallenge(in: lines) == nil, "\(lines)") }
}

import CCurl
import CacheEngine
import Platform
import Testing

@testable import CurlOrigin

@Suite struct CurlFailureTests {
    @Test func onlyWhatWasNotSentIsUnreachable() {
        let code = { (progress: CurlFailure.Progress, code: CURLcode) in
            CurlFailure.error(code, text: "", progress, isConnectionSound: false).code
        }
        for failure in [
            CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST, CURLE_OPERATION_TIMEDOUT,
            CURLE_SSL_CONNECT_ERROR,
        ] {
            #expect(code(.unsent, failure) == .originUnreachable)
            #expect(code(.sent, failure) != .originUnreachable)
            #expect(code(.arriving, failure) != .originUnreachable)
        }
        #expect(code(.sent, CURLE_OPERATION_TIMEDOUT) == .originTimedOut)
        #expect(code(.unsent, CURLE_URL_MALFORMAT) == .requestInvalid)
        #expect(code(.sent, CURLE_GOT_NOTHING) == .originFailed)
        #expect(code(.arriving, CURLE_PARTIAL_FILE) == .bodyTruncated)
    }

    @Test func whatThisMachineLacksIsNotTheOriginsFault() {
        let failures = [CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST]
        for failure in failures {
            let lack = CurlFailure.lack(failure, .unsent, systemCode: 0) { EMFILE }
            #expect(lack?.shown.code == .originFailed)
            #expect(CurlFailure.lack(failure, .unsent, systemCode: 0) { 0 } == nil)
            #expect(CurlFailure.lack(failure, .sent, systemCode: 0) { EMFILE } == nil)
        }
        let ports = CurlFailure.lack(failures[0], .unsent, systemCode: EADDRNOTAVAIL) { 0 }
        #expect(ports?.description.hasPrefix("Cannot open a socket to the origin: ") == true)
        let refused = CurlFailure.lack(failures[0], .unsent, systemCode: ECONNREFUSED) { EMFILE }
        #expect(refused == nil)
        let certificate = CURLE_PEER_FAILED_VERIFICATION
        #expect(CurlFailure.lack(certificate, .unsent, systemCode: 0) { EMFILE } == nil)
    }

    @Test func textOfLibcurlIsEscaped() {
        let error = CurlFailure.error(
            CURLE_WEIRD_SERVER_REPLY,
            text: "Received \u{1B}[2J",
            .sent,
            isConnectionSound: true
        )
        #expect(error.detail == "libcurl: Received \\u{1b}[2J")
    }

    @Test(arguments: [
        (CurlFailure.Progress.arriving, true, CacheError.Code.originMisbehaved),
        (.arriving, false, .bodyTruncated), (.sent, true, .originFailed),
    ])
    func bytesAreAtFaultOnlyOnASoundConnection(
        _ row: (CurlFailure.Progress, Bool, CacheError.Code)
    ) {
        // libcurl's text is of no account, whichever version wrote it.
        for text in ["", "Illegal or missing hexadecimal sequence in chunked-encoding"] {
            let error = CurlFailure.error(
                CURLE_RECV_ERROR,
                text: text,
                row.0,
                isConnectionSound: row.1
            )
            #expect(error.code == row.2)
        }
    }
}
